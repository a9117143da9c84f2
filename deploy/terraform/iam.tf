# No statement has a wildcard in an action. Two kinds of resources end with "*", because the
# names are not known in advance: objects (bucket/prefix*) and log streams (log-group:*).

resource "aws_iam_role" "this" {
  name               = var.name
  assume_role_policy = data.aws_iam_policy_document.assume.json
  tags               = var.tags
}

data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }
  }
}

resource "aws_iam_role_policy" "this" {
  name   = "pawl"
  role   = aws_iam_role.this.id
  policy = data.aws_iam_policy_document.this.json
}

locals {
  bucket_arn = "arn:${local.partition}:s3:::"
  inputs     = flatten([for input in var.input_buckets : [for prefix in input.prefixes : "${local.bucket_arn}${input.bucket}/${prefix}*"]])
  outputs    = [for output in var.output_buckets : "${local.bucket_arn}${output.bucket}/${output.prefix}*"]
  listed     = distinct([for bucket in concat(values(var.input_buckets)[*].bucket, values(var.output_buckets)[*].bucket) : "${local.bucket_arn}${bucket}"])

  config_object    = startswith(var.config, "s3://") ? ["${local.bucket_arn}${trimprefix(var.config, "s3://")}"] : []
  config_parameter = startswith(var.config, "ssm:") ? ["arn:${local.partition}:ssm:${local.region}:${local.account}:parameter/${trimprefix(trimprefix(var.config, "ssm:"), "/")}"] : []
}

data "aws_iam_policy_document" "this" {
  statement {
    sid       = "Table"
    actions   = ["dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:PutItem", "dynamodb:DeleteItem"]
    resources = [aws_dynamodb_table.this.arn]
  }

  statement {
    sid       = "Due"
    actions   = ["dynamodb:Query"]
    resources = ["${aws_dynamodb_table.this.arn}/index/due"]
  }

  statement {
    sid       = "Queue"
    actions   = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    resources = [aws_sqs_queue.this.arn]
  }

  statement {
    sid       = "List"
    actions   = ["s3:ListBucket"]
    resources = local.listed
  }

  statement {
    sid       = "Inputs"
    actions   = ["s3:GetObject", "s3:GetObjectVersion"]
    resources = local.inputs
  }

  dynamic "statement" {
    for_each = length(local.outputs) == 0 ? [] : [local.outputs]

    content {
      sid       = "Outputs"
      actions   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
      resources = statement.value
    }
  }

  statement {
    sid       = "Log"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.this.arn}:*"]
  }

  dynamic "statement" {
    for_each = local.config_object

    content {
      sid       = "ConfigObject"
      actions   = ["s3:GetObject"]
      resources = [statement.value]
    }
  }

  dynamic "statement" {
    for_each = local.config_parameter

    content {
      sid       = "ConfigParameter"
      actions   = ["ssm:GetParameter"]
      resources = [statement.value]
    }
  }

  dynamic "statement" {
    for_each = var.kms_key_arn == null ? [] : [var.kms_key_arn]

    content {
      sid       = "Key"
      actions   = ["kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:DescribeKey"]
      resources = [statement.value]
    }
  }

  dynamic "statement" {
    for_each = length(var.bucket_kms_key_arns) == 0 ? [] : [var.bucket_kms_key_arns]

    content {
      sid       = "BucketKeys"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
      resources = statement.value
    }
  }
}

data "aws_iam_policy_document" "queue" {
  statement {
    sid       = "Events"
    actions   = ["sqs:SendMessage"]
    resources = [local.queue_arn]

    principals {
      type        = "Service"
      identifiers = ["events.amazonaws.com"]
    }

    condition {
      test     = "ArnEquals"
      variable = "aws:SourceArn"
      values   = values(aws_cloudwatch_event_rule.input)[*].arn
    }
  }
}
