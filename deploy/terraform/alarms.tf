locals {
  alarms = {
    message-age = {
      description = "Messages wait longer than expected: the function fails, or is too slow"
      namespace   = "AWS/SQS"
      metric      = "ApproximateAgeOfOldestMessage"
      dimensions  = { QueueName = aws_sqs_queue.this.name }
      statistic   = "Maximum"
      threshold   = var.max_message_age
    }
    dead-letters = {
      description = "Messages are in the dead-letter queue: find the cause in the log, then redrive the queue"
      namespace   = "AWS/SQS"
      metric      = "ApproximateNumberOfMessagesVisible"
      dimensions  = { QueueName = aws_sqs_queue.dead_letter.name }
      statistic   = "Maximum"
      threshold   = 0
    }
    errors = {
      description = "Invocations of the function fail or time out"
      namespace   = "AWS/Lambda"
      metric      = "Errors"
      dimensions  = { FunctionName = aws_lambda_function.this.function_name }
      statistic   = "Sum"
      threshold   = 0
    }
    throttles = {
      description = "Lambda throttles the function: the account has too little concurrency"
      namespace   = "AWS/Lambda"
      metric      = "Throttles"
      dimensions  = { FunctionName = aws_lambda_function.this.function_name }
      statistic   = "Sum"
      threshold   = 0
    }
    dead-objects = {
      description = "Objects failed for the last time: see `pawl ls --state dead`"
      namespace   = "Pawl/${var.name}"
      metric      = "DeadObjects"
      dimensions  = {}
      statistic   = "Sum"
      threshold   = 0
    }
  }

  table_dimensions = { TableName = aws_dynamodb_table.this.name }
  index_dimensions = { TableName = aws_dynamodb_table.this.name, GlobalSecondaryIndexName = "due" }
  throttles = {
    reads        = { metric = "ReadThrottleEvents", dimensions = local.table_dimensions }
    writes       = { metric = "WriteThrottleEvents", dimensions = local.table_dimensions }
    index_reads  = { metric = "ReadThrottleEvents", dimensions = local.index_dimensions }
    index_writes = { metric = "WriteThrottleEvents", dimensions = local.index_dimensions }
  }
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = local.alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = each.value.statistic
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.threshold
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_actions
  ok_actions          = var.alarm_actions
  tags                = var.tags
}

resource "aws_cloudwatch_metric_alarm" "table_throttles" {
  alarm_name          = "${var.name}-table-throttles"
  alarm_description   = "DynamoDB throttles the table or its index for 15 minutes: Pawl is slower and loses nothing"
  evaluation_periods  = 3
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_actions
  ok_actions          = var.alarm_actions
  tags                = var.tags

  metric_query {
    id          = "throttled"
    expression  = "SUM(FILL(METRICS(), 0))"
    label       = "Throttled reads and writes"
    return_data = true
  }

  dynamic "metric_query" {
    for_each = local.throttles

    content {
      id = metric_query.key

      metric {
        namespace   = "AWS/DynamoDB"
        metric_name = metric_query.value.metric
        dimensions  = metric_query.value.dimensions
        period      = 300
        stat        = "Sum"
      }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "sweep" {
  alarm_name          = "${var.name}-sweep"
  alarm_description   = "The schedule started no sweep for 10 minutes: objects that failed are not retried"
  namespace           = "AWS/Events"
  metric_name         = "Invocations"
  dimensions          = { RuleName = aws_cloudwatch_event_rule.schedule["sweep"].name }
  statistic           = "Sum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  treat_missing_data  = "breaching"
  alarm_actions       = var.alarm_actions
  ok_actions          = var.alarm_actions
  tags                = var.tags
}

# The text of Pawl's log line for an object that becomes dead.
resource "aws_cloudwatch_log_metric_filter" "dead_objects" {
  name           = "${var.name}-dead-objects"
  log_group_name = aws_cloudwatch_log_group.this.name
  pattern        = "\"dead: no more attempts\""

  metric_transformation {
    namespace = "Pawl/${var.name}"
    name      = "DeadObjects"
    value     = "1"
  }
}
