"""RULEs of the cluster and of its system nodes."""

import json

from tests.pulumi_engine import read_stack, run
from workloads.catalogue.versions import KUBERNETES


def test_access_is_by_entries_and_no_security_group_node_group_or_oidc_is_made_by_default(dev):
    assert dev.one("eks:index:Cluster").inputs["authenticationMode"] == "API"
    assert dev.one("eks:index:Cluster").inputs["skipDefaultNodeGroup"] is True
    assert dev.one("eks:index:Cluster").inputs["skipDefaultSecurityGroups"] is True
    assert dev.one("eks:index:Cluster").inputs["createOidcProvider"] is False
    assert dev.of("SecurityGroup") == []


def test_auto_mode_is_off(dev):
    assert "autoMode" not in dev.one("eks:index:Cluster").inputs
    assert dev.one("NodeGroup")


def test_both_endpoints_are_stated_so_that_the_component_waits_for_a_healthy_server(dev):
    assert dev.one("eks:index:Cluster").inputs["endpointPublicAccess"] is True
    assert dev.one("eks:index:Cluster").inputs["endpointPrivateAccess"] is True


def test_the_public_endpoint_is_open_to_those_that_the_stack_names_and_by_default_to_all(dev):
    asked = read_stack("dev").with_values(platform={"apiAccessCidrs": ["203.0.113.7/32", "198.51.100.0/24"]})
    cluster = run(asked).one("eks:index:Cluster").inputs
    assert cluster["publicAccessCidrs"] == ["203.0.113.7/32", "198.51.100.0/24"]
    assert "publicAccessCidrs" not in dev.one("eks:index:Cluster").inputs


def test_a_private_endpoint_is_the_only_one_where_the_stack_says_so():
    cluster = run(read_stack("dev").with_values(platform={"apiEndpoint": "private"})).one("eks:index:Cluster").inputs
    assert cluster["endpointPublicAccess"] is False
    assert cluster["endpointPrivateAccess"] is True
    assert "publicAccessCidrs" not in cluster


ADMINS = ["arn:aws:iam::123456789012:role/Lab", "arn:aws:iam::123456789012:user/team/ann"]


def test_teammates_are_admins_by_entries_that_outlive_what_stands_in_the_cluster():
    graph = run(read_stack("dev").with_values(platform={"admins": ADMINS}))
    for name, principal in zip(("admin-role-Lab", "admin-user-team-ann"), ADMINS, strict=True):
        entry, right = graph.one("AccessEntry", name), graph.one("AccessPolicyAssociation", name)
        assert (entry.inputs["principalArn"], entry.inputs.get("type")) == (principal, None)
        assert right.inputs["policyArn"] == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
        assert right.inputs["accessScope"] == {"type": "cluster"}
        # Whoever of them runs the destroy must get in until the last object is gone.
        for kind, inside in (("Release", "karpenter-crd"), ("Namespace", "namespace"), ("NodePool", "node-pool")):
            assert graph.outlives(right, graph.one(kind, inside))
        assert graph.outlives(entry, right)


def test_the_control_planes_log_ends_and_outlives_the_cluster_and_the_guard(dev):
    cluster, log = dev.one("eks:index:Cluster"), dev.one("LogGroup")
    assert cluster.inputs["enabledClusterLogTypes"] == ["api", "audit", "authenticator"]
    assert log.inputs["name"] == f"/aws/eks/{cluster.inputs['name']}/cluster"
    assert log.inputs["retentionInDays"] == 14
    assert not log.retained
    # EKS makes the group anew where it still has something to write.
    assert dev.outlives(log, cluster)
    assert dev.outlives(log, dev.one("InterfacesGone"))


def test_every_role_has_the_boundary_that_an_organisation_asks_for(dev):
    boundary = "arn:aws:iam::123456789012:policy/Boundary"
    graph = run(read_stack("dev").with_values(platform={"permissionsBoundary": boundary}))
    assert {r.name: r.inputs.get("permissionsBoundary") for r in graph.of("aws:iam/role:Role")} == dict.fromkeys(
        ("control-plane", "system-node-role", "gpu-node-role", "controller", "trainer"), boundary
    )
    assert not any("permissionsBoundary" in r.inputs for r in dev.of("aws:iam/role:Role"))


def test_the_clusters_role_is_ours_and_has_its_policy_for_as_long_as_the_cluster(dev):
    cluster, role = dev.one("eks:index:Cluster"), dev.one("aws:iam/role:Role", "control-plane")
    assert "serviceRole" in cluster.inputs
    (trust,) = json.loads(role.inputs["assumeRolePolicy"])["Statement"]
    assert trust["Principal"] == {"Service": "eks.amazonaws.com"}
    granted = dev.one("RolePolicyAttachment", "control-plane")
    assert granted.inputs["policyArn"] == "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
    assert dev.outlives(granted, cluster)


def test_disks_of_system_nodes_are_encrypted_and_they_bear_the_stacks_tags(dev):
    template = dev.one("LaunchTemplate").inputs
    (disk,) = template["blockDeviceMappings"]
    assert disk["ebs"]["encrypted"] == "true"
    tagged = {one["resourceType"]: one["tags"] for one in template["tagSpecifications"]}
    assert tagged.keys() == {"instance", "volume"}
    assert all(tags["topolab:stack"] == "dev" for tags in tagged.values())
    # Image and security group stay EKS's own.
    assert not {"imageId", "vpcSecurityGroupIds", "networkInterfaces", "userData"} & template.keys()
    assert dev.one("NodeGroup").inputs["launchTemplate"] == {"id": "system-node-0a1b2c", "version": "1"}
    assert "diskSize" not in dev.one("NodeGroup").inputs


def test_the_version_is_the_catalogues(dev):
    assert dev.one("eks:index:Cluster").inputs["version"] == KUBERNETES


def test_the_control_plane_spans_both_zones_in_public_and_private_subnets(dev):
    assert dev.one("eks:index:Cluster").inputs["privateSubnetIds"] == ["gpu-private-0a1b2c", "other-private-0a1b2c"]
    assert dev.one("eks:index:Cluster").inputs["publicSubnetIds"] == ["gpu-public-0a1b2c", "other-public-0a1b2c"]


def test_coredns_waits_for_nodes_and_is_not_the_components(dev):
    assert dev.one("eks:index:Cluster").inputs["corednsAddonOptions"]["enabled"] is False
    dns = dev.one("Addon", "coredns")
    assert dev.one("NodeGroup").urn in dns.dependencies
    assert dns.inputs["resolveConflictsOnCreate"] == "OVERWRITE"


def test_no_add_on_moves_by_itself_and_network_and_credentials_come_before_nodes(dev):
    cluster = dev.one("eks:index:Cluster").inputs
    assert cluster["useDefaultVpcCni"] is True
    assert cluster["kubeProxyAddonOptions"]["enabled"] is False
    ours = {one.name: one for one in dev.of("aws:eks/addon:Addon")}
    assert ours.keys() == {"vpc-cni", "kube-proxy", "eks-pod-identity-agent", "coredns"}
    assert not any("addonVersion" in one.inputs for one in ours.values())
    assert {one.inputs["resolveConflictsOnCreate"] for one in ours.values()} == {"OVERWRITE"}
    for name in ("vpc-cni", "kube-proxy", "eks-pod-identity-agent"):
        assert dev.outlives(ours[name], dev.one("NodeGroup"))
    assert "aws:eks/getAddonVersion:getAddonVersion" not in dev.invokes


def test_two_system_nodes_of_al2023_over_two_zones_with_a_role_of_their_own(dev):
    nodes = dev.one("NodeGroup").inputs
    assert nodes["scalingConfig"] == {"minSize": 2, "desiredSize": 2, "maxSize": 2}
    assert nodes["amiType"] == "AL2023_x86_64_STANDARD"
    assert nodes["instanceTypes"] == ["m7i.xlarge"]
    assert len(nodes["subnetIds"]) == 2
    assert dev.one("Role", "system-node-role").urn in dev.one("NodeGroup").dependencies
    assert dev.one("Role", "gpu-node-role").urn not in dev.one("NodeGroup").dependencies


def test_nodes_start_with_all_the_policies_of_their_role(dev):
    policies = {
        a.inputs["policyArn"].rsplit("/", 1)[1]
        for a in dev.of("RolePolicyAttachment")
        if a.urn in dev.one("NodeGroup").dependencies
    }
    assert policies == {
        "AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly",
        "AmazonSSMManagedInstanceCore",
    }  # fmt: skip


def test_a_profile_of_aws_is_used_by_provider_and_kubeconfig_alike(dev):
    stack = read_stack("dev")
    graph = run(type(stack)(stack="dev", config={**stack.config, "aws:profile": "lab"}))
    assert graph.one("pulumi:providers:aws").inputs["profile"] == "lab"
    assert graph.one("eks:index:Cluster").inputs["providerCredentialOpts"] == {"profileName": "lab"}
    assert "providerCredentialOpts" not in dev.one("eks:index:Cluster").inputs


def test_an_object_that_is_there_already_is_refused_but_by_one_run_that_is_told_to_take_it_over(dev, monkeypatch):
    assert "upsertExistingObjects" not in dev.one("pulumi:providers:kubernetes").inputs
    monkeypatch.setenv("PULUMI_K8S_UPSERT_EXISTING_OBJECTS", "true")
    assert run(read_stack("dev")).one("pulumi:providers:kubernetes").inputs["upsertExistingObjects"] == "true"
