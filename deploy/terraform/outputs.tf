output "function_name" {
  description = "Name of the function"
  value       = aws_lambda_function.this.function_name
}

output "function_arn" {
  description = "ARN of the function"
  value       = aws_lambda_function.this.arn
}

output "role_name" {
  description = "Name of the function's role. Attach further policies to it"
  value       = aws_iam_role.this.name
}

output "queue_url" {
  description = "URL of the queue"
  value       = aws_sqs_queue.this.url
}

output "queue_arn" {
  description = "ARN of the queue"
  value       = aws_sqs_queue.this.arn
}

output "dead_letter_queue_url" {
  description = "URL of the dead-letter queue"
  value       = aws_sqs_queue.dead_letter.url
}

output "dead_letter_queue_arn" {
  description = "ARN of the dead-letter queue"
  value       = aws_sqs_queue.dead_letter.arn
}

output "table_name" {
  description = "Name of the table"
  value       = aws_dynamodb_table.this.name
}

output "ledger_url" {
  description = "URL of the ledger, as in `pawl ls --ledger`. The function has it in `PAWL_LEDGER`"
  value       = local.ledger_url
}

output "log_group_name" {
  description = "Name of the function's log group"
  value       = aws_cloudwatch_log_group.this.name
}
