# Grayscale copies of the pictures in a bucket that exists. Switch EventBridge on for the
# bucket first: README.md of the module has the command.

provider "aws" {
  region = "eu-central-1"
}

module "pawl" {
  source = "../.."

  package        = "pawl.zip"
  input_buckets  = { photos = { bucket = "example-photos", prefixes = ["in/"] } }
  output_buckets = { gray = { bucket = "example-photos-gray" } }
}
