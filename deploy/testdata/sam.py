"""Translates the SAM template, as CloudFormation does, writes the result to a file, deploys it, and prints
what it has deployed as JSON. Usage: sam.py template.yaml translated.json"""

import ast
import json
import sys

import boto3
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse


class NoManagedPolicies:
    def load(self):
        return {}


parameters = {
    "InputBucket": "example-photos",
    "OutputBucket": "example-photos-gray",
    "AlarmTopic": "arn:aws:sns:eu-central-1:123456789012:alarms",
    "KmsKey": boto3.client("kms").create_key()["KeyMetadata"]["Arn"],
}
with open(sys.argv[1]) as f:
    template = yaml_parse(f.read())
template["Resources"]["Function"]["Properties"]["CodeUri"] = "s3://example-code/pawl.zip"
translated = json.dumps(transform(template, parameters, NoManagedPolicies()), indent=1)
with open(sys.argv[2], "w") as f:
    f.write(translated)

region = boto3.session.Session().region_name
s3 = boto3.client("s3")
s3.create_bucket(Bucket="example-code", CreateBucketConfiguration={"LocationConstraint": region})
s3.put_object(Bucket="example-code", Key="pawl.zip", Body=b"x")

cloudformation = boto3.client("cloudformation")
cloudformation.create_stack(
    StackName="pawl",
    TemplateBody=translated,
    Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in parameters.items()],
    Capabilities=["CAPABILITY_IAM"],
)
stack = cloudformation.describe_stacks(StackName="pawl")["Stacks"][0]
role = cloudformation.describe_stack_resource(StackName="pawl", LogicalResourceId="Role")["StackResourceDetail"]
policy = boto3.client("iam").get_role_policy(RoleName=role["PhysicalResourceId"], PolicyName="pawl")["PolicyDocument"]
policy = ast.literal_eval(policy)  # moto keeps it as Python prints it
print(json.dumps({
    "status": stack["StackStatus"],
    "outputs": {o["OutputKey"]: o["OutputValue"] for o in stack["Outputs"]},
    "policy": json.dumps(policy),
}))
