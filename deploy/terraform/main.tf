data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  partition = data.aws_partition.current.partition
  region    = data.aws_region.current.id
  account   = data.aws_caller_identity.current.account_id

  # Built from its parts, because the queue's policy needs it before the queue exists.
  queue_arn  = "arn:${local.partition}:sqs:${local.region}:${local.account}:${var.name}"
  ledger_url = "dynamodb://${aws_dynamodb_table.this.name}?region=${local.region}"
}

# Events: bucket, EventBridge, queue

resource "aws_s3_bucket_notification" "this" {
  for_each = var.create_notification ? var.input_buckets : {}

  bucket      = each.value.bucket
  eventbridge = true
}

resource "aws_cloudwatch_event_rule" "input" {
  for_each = var.input_buckets

  name        = "${var.name}-${each.key}"
  description = "Sends the changes in the bucket ${each.value.bucket} to Pawl"
  event_pattern = jsonencode({
    source      = ["aws.s3"]
    detail-type = ["Object Created", "Object Deleted"]
    detail = {
      bucket = { name = [each.value.bucket] }
      object = { key = [for prefix in each.value.prefixes : { prefix = prefix }] }
    }
  })
  tags = var.tags
}

resource "aws_cloudwatch_event_target" "input" {
  for_each = var.input_buckets

  rule = aws_cloudwatch_event_rule.input[each.key].name
  arn  = aws_sqs_queue.this.arn
}

resource "aws_sqs_queue" "this" {
  name                       = var.name
  visibility_timeout_seconds = 6 * var.timeout
  policy                     = data.aws_iam_policy_document.queue.json
  sqs_managed_sse_enabled    = var.kms_key_arn == null ? true : null
  kms_master_key_id          = var.kms_key_arn
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letter.arn
    maxReceiveCount     = var.max_receive_count
  })
  tags = var.tags
}

resource "aws_sqs_queue" "dead_letter" {
  name                      = "${var.name}-dead-letter"
  message_retention_seconds = 1209600 # 14 days, the longest that SQS has
  sqs_managed_sse_enabled   = var.kms_key_arn == null ? true : null
  kms_master_key_id         = var.kms_key_arn
  tags                      = var.tags
}

# Ledger

resource "aws_dynamodb_table" "this" {
  name                        = var.name
  billing_mode                = "PAY_PER_REQUEST"
  deletion_protection_enabled = var.deletion_protection
  hash_key                    = "p"
  range_key                   = "s"
  tags                        = var.tags

  attribute {
    name = "p"
    type = "S"
  }

  attribute {
    name = "s"
    type = "B"
  }

  attribute {
    name = "d"
    type = "B"
  }

  global_secondary_index {
    name            = "due"
    hash_key        = "p"
    range_key       = "d"
    projection_type = "KEYS_ONLY"
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }
}

# Function

resource "aws_lambda_function" "this" {
  function_name    = var.name
  description      = "Pawl: processes the changes of objects once, and in order"
  filename         = var.package
  source_code_hash = filebase64sha256(var.package)
  handler          = "bootstrap"
  runtime          = "provided.al2023"
  architectures    = [var.architecture]
  timeout          = var.timeout
  memory_size      = var.memory_size
  role             = aws_iam_role.this.arn
  kms_key_arn      = var.kms_key_arn
  tags             = var.tags

  environment {
    variables = merge(var.environment, {
      PAWL_CONFIG = var.config
      PAWL_LEDGER = local.ledger_url
    })
  }

  # The first invocation needs the permissions and the log group.
  depends_on = [aws_iam_role_policy.this, aws_cloudwatch_log_group.this]
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/aws/lambda/${var.name}"
  retention_in_days = var.log_retention_in_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

resource "aws_lambda_event_source_mapping" "this" {
  event_source_arn        = aws_sqs_queue.this.arn
  function_name           = aws_lambda_function.this.arn
  batch_size              = var.batch_size
  function_response_types = ["ReportBatchItemFailures"]
  tags                    = var.tags

  scaling_config {
    maximum_concurrency = var.maximum_concurrency
  }
}

# Schedule

locals {
  schedules = {
    sweep = "rate(1 minute)" # Pawl reports an error if no sweep succeeds for five minutes
    audit = var.audit_schedule
  }
}

resource "aws_cloudwatch_event_rule" "schedule" {
  for_each = local.schedules

  name                = "${var.name}-schedule-${each.key}"
  description         = "Starts the ${each.key} of Pawl"
  schedule_expression = each.value
  tags                = var.tags
}

resource "aws_cloudwatch_event_target" "schedule" {
  for_each = local.schedules

  rule  = aws_cloudwatch_event_rule.schedule[each.key].name
  arn   = aws_lambda_function.this.arn
  input = jsonencode({ pawl = each.key })
}

resource "aws_lambda_permission" "schedule" {
  for_each = local.schedules

  statement_id  = each.key
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.this.function_name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.schedule[each.key].arn
}
