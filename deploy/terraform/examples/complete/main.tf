# Two input buckets and two output buckets, with a KMS key for everything, a topic for alarms, and the
# configuration in Parameter Store, where it changes without a new package.

provider "aws" {
  region = "eu-central-1"
}

data "aws_caller_identity" "current" {}

locals {
  name    = "pawl-example"
  account = data.aws_caller_identity.current.account_id
  buckets = toset(["photos", "exports", "gray", "copies"])
}

module "pawl" {
  source = "../.."

  name         = local.name
  package      = "pawl.zip"
  architecture = "x86_64"
  config       = "ssm:${aws_ssm_parameter.config.name}"
  environment  = { PAWL_EXAMPLE_ACCOUNT = local.account }
  timeout      = 300
  memory_size  = 2048

  input_buckets = {
    photos  = { bucket = aws_s3_bucket.this["photos"].bucket, prefixes = ["in/", "scans/"] }
    exports = { bucket = aws_s3_bucket.this["exports"].bucket }
  }
  output_buckets = {
    gray   = { bucket = aws_s3_bucket.this["gray"].bucket, prefix = "gray/" }
    copies = { bucket = aws_s3_bucket.this["copies"].bucket }
  }
  create_notification = true # nothing else configures notifications of these new buckets

  batch_size          = 5
  maximum_concurrency = 20
  max_receive_count   = 8
  audit_schedule      = "rate(30 minutes)"
  deletion_protection = false # an example must be easy to remove

  kms_key_arn         = aws_kms_key.this.arn
  bucket_kms_key_arns = [aws_kms_key.this.arn]

  alarm_actions         = [aws_sns_topic.alarms.arn]
  max_message_age       = 1800
  log_retention_in_days = 90

  tags = { Example = local.name }
}

output "ledger_url" {
  description = "URL of the ledger"
  value       = module.pawl.ledger_url
}

resource "aws_ssm_parameter" "config" {
  name  = "/${local.name}/config"
  type  = "String"
  value = file("${path.module}/pawl.yaml")
}

resource "aws_s3_bucket" "this" {
  for_each = local.buckets

  bucket        = "${local.name}-${each.key}-${local.account}"
  force_destroy = true
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  for_each = local.buckets

  bucket = aws_s3_bucket.this[each.key].bucket

  rule {
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = aws_kms_key.this.arn
    }
  }
}

resource "aws_sns_topic" "alarms" {
  name              = "${local.name}-alarms"
  kms_master_key_id = aws_kms_key.this.arn
}

resource "aws_kms_key" "this" {
  description             = "Pawl example"
  enable_key_rotation     = true
  deletion_window_in_days = 7
  policy                  = data.aws_iam_policy_document.key.json
}

data "aws_iam_policy_document" "key" {
  # "kms:*" leaves the key to the IAM policies of the account, as the key policy that AWS makes does.
  # A key policy's resource is always "*", which means this key.
  statement {
    sid       = "Account"
    actions   = ["kms:*"]
    resources = ["*"]

    principals {
      type        = "AWS"
      identifiers = ["arn:aws:iam::${local.account}:root"]
    }
  }

  # EventBridge sends to the encrypted queue, CloudWatch to the encrypted topic.
  statement {
    sid       = "Senders"
    actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
    resources = ["*"]

    principals {
      type        = "Service"
      identifiers = ["events.amazonaws.com", "cloudwatch.amazonaws.com"]
    }
  }

  statement {
    sid       = "Logs"
    actions   = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:GenerateDataKey", "kms:DescribeKey"]
    resources = ["*"]

    principals {
      type        = "Service"
      identifiers = ["logs.eu-central-1.amazonaws.com"]
    }

    condition {
      test     = "ArnEquals"
      variable = "kms:EncryptionContext:aws:logs:arn"
      values   = ["arn:aws:logs:eu-central-1:${local.account}:log-group:/aws/lambda/${local.name}"]
    }
  }
}
