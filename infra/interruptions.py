"""The queue that tells Karpenter that a node is about to go."""

import json
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.component import Component
from infra.iam import Policy, policy


@dataclass(frozen=True, kw_only=True)
class InterruptionsArgs:
    """`name` of the queue, `queue_arn` as it will be, and the rules' names by event."""

    name: str
    queue_arn: str
    rule_names: dict[str, str]


class Interruptions(Component):
    """Queue, its policy, and one EventBridge rule an event."""

    TYPE = "topolab:infra:Interruptions"
    queue_name: pulumi.Output[str]

    def __init__(self, name: str, args: InterruptionsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        queue = aws.sqs.Queue(
            "interruptions",
            name=args.name,
            # A notice older than five minutes speaks of an instance that is gone.
            message_retention_seconds=300,
            sqs_managed_sse_enabled=True,
            opts=self.child(),
        )
        aws.sqs.QueuePolicy(
            "interruptions",
            queue_url=queue.id,
            policy=json.dumps(queue_policy(args.queue_arn)),
            opts=self.child(),
        )
        for event, pattern in INTERRUPTION_EVENTS.items():
            rule = aws.cloudwatch.EventRule(
                f"on-{event}",
                name=args.rule_names[event],
                event_pattern=json.dumps(pattern),
                opts=self.child(),
            )
            aws.cloudwatch.EventTarget(
                f"on-{event}", rule=rule.name, target_id="karpenter", arn=queue.arn, opts=self.child()
            )
        self.queue_name = queue.name
        self.register_outputs({"queue_name": self.queue_name})


def queue_policy(queue_arn: str) -> Policy:
    """EventBridge may send to the queue; nothing may over plain HTTP."""
    return policy(
        {
            "Sid": "AllowEvents",
            "Effect": "Allow",
            "Principal": {"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]},
            "Action": "sqs:SendMessage",
            "Resource": queue_arn,
        },
        {
            "Sid": "DenyHTTP",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "sqs:*",
            "Resource": queue_arn,
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
    )


INTERRUPTION_EVENTS: dict[str, dict[str, list[str]]] = {
    "health": {"source": ["aws.health"], "detail-type": ["AWS Health Event"]},
    "spot": {"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]},
    "rebalance": {"source": ["aws.ec2"], "detail-type": ["EC2 Instance Rebalance Recommendation"]},
    "state-change": {"source": ["aws.ec2"], "detail-type": ["EC2 Instance State-change Notification"]},
    "reservation": {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Capacity Reservation Instance Interruption Warning"],
    },
}
"""EventBridge patterns of what ends or moves a node, by the part of the rule's name."""
