variable "name" {
  description = "Name of the function, the table, and the queue, and the first part of all other names"
  type        = string
  default     = "pawl"

  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9_-]{2,31}$", var.name))
    error_message = "The name must have 3 to 32 letters, digits, - and _, and begin with a letter."
  }
}

variable "tags" {
  description = "Tags of all resources"
  type        = map(string)
  default     = {}
}

# Function

variable "package" {
  description = "Path of the zip file with `bootstrap` (the pawl binary for Linux) and usually `pawl.yaml`"
  type        = string
}

variable "architecture" {
  description = "Architecture of the binary in the package: `arm64` or `x86_64`"
  type        = string
  default     = "arm64"

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "The architecture must be arm64 or x86_64."
  }
}

variable "config" {
  description = "Configuration of Pawl: a path in the package, `s3://bucket/key`, or `ssm:/name/of/parameter`"
  type        = string
  default     = "pawl.yaml"
}

variable "environment" {
  description = "More environment variables, which replace `$${NAME}` in the configuration. Everyone who may read the function can read them"
  type        = map(string)
  default     = {}
}

variable "timeout" {
  description = "Time-out of an invocation, in seconds"
  type        = number
  default     = 120

  validation {
    condition     = var.timeout >= 10 && var.timeout <= 900
    error_message = "The time-out must be 10 to 900 seconds."
  }
}

variable "memory_size" {
  description = "Memory of the function, in MB"
  type        = number
  default     = 1024
}

variable "log_retention_in_days" {
  description = "Number of days to keep the log of the function"
  type        = number
  default     = 30
}

# Buckets

variable "input_buckets" {
  description = "Buckets whose objects Pawl processes. The keys of the map become parts of names. Pawl gets the events of objects whose keys begin with one of `prefixes`, and reads these objects"
  type = map(object({
    bucket   = string
    prefixes = optional(list(string), [""])
  }))

  validation {
    condition     = length(var.input_buckets) > 0 && alltrue([for key in keys(var.input_buckets) : can(regex("^[A-Za-z0-9_-]{1,31}$", key))])
    error_message = "At least one bucket is needed, and its key in the map must have 1 to 31 letters, digits, - and _."
  }
}

variable "output_buckets" {
  description = "Buckets that Pawl writes to, below `prefix`. An output must not lie in an input"
  type = map(object({
    bucket = string
    prefix = optional(string, "")
  }))
  default = {}
}

variable "create_notification" {
  description = "Whether the module switches EventBridge on for the input buckets. This replaces each bucket's whole notification configuration"
  type        = bool
  default     = false
}

# Queue

variable "batch_size" {
  description = "Maximum number of messages in an invocation"
  type        = number
  default     = 10
}

variable "maximum_concurrency" {
  description = "Maximum number of invocations for the queue at a time"
  type        = number
  default     = 10

  validation {
    condition     = var.maximum_concurrency >= 2 && var.maximum_concurrency <= 1000
    error_message = "Lambda accepts a maximum concurrency of 2 to 1000."
  }
}

variable "max_receive_count" {
  description = "Number of times that a message is received before it moves to the dead-letter queue"
  type        = number
  default     = 5

  validation {
    condition     = var.max_receive_count >= 5
    error_message = "Lambda's own throttling counts as receiving: at least 5 are needed."
  }
}

# Table

variable "deletion_protection" {
  description = "Whether the table is protected from deletion"
  type        = bool
  default     = true
}

# Schedule

variable "audit_schedule" {
  description = "Times at which the audit and the purge continue: a `rate` or `cron` expression of EventBridge"
  type        = string
  default     = "rate(1 hour)"
}

# Encryption

variable "kms_key_arn" {
  description = "ARN of a KMS key that encrypts the queues, the table, the log, and the environment variables. If null, keys of AWS encrypt them"
  type        = string
  default     = null
}

variable "bucket_kms_key_arns" {
  description = "ARNs of the KMS keys that encrypt objects of the input and output buckets"
  type        = list(string)
  default     = []
}

# Alarms

variable "alarm_actions" {
  description = "ARNs to notify when an alarm begins or ends, such as an SNS topic"
  type        = list(string)
  default     = []
}

variable "max_message_age" {
  description = "Age of the oldest message that raises an alarm, in seconds"
  type        = number
  default     = 900
}
