"""What every component of this program shares."""

import pulumi


class Component(pulumi.ComponentResource):
    """A component resource whose type token is a constant of its class."""

    TYPE: str

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(self.TYPE, name, None, opts)

    def child(
        self,
        *,
        depends_on: list[pulumi.Resource] | None = None,
        delete_timeout: str | None = None,
        create_timeout: str | None = None,
        retain: bool = False,
    ) -> pulumi.ResourceOptions:
        """Options of a resource inside this component; providers flow from the parent.

        `retain`: `pulumi destroy` forgets the resource and AWS keeps it.
        """
        timed = delete_timeout or create_timeout
        return pulumi.ResourceOptions(
            parent=self,
            depends_on=depends_on,
            custom_timeouts=pulumi.CustomTimeouts(create=create_timeout, delete=delete_timeout) if timed else None,
            retain_on_delete=retain or None,
        )
