"""The other autoscalers that Growth is measured against, each run on exactly our inputs."""
