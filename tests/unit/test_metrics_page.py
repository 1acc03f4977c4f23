"""The metrics that we claim, held to Karpenter's: the same names with the same labels, or said to be missing."""

import pathlib

from growth.operator.metrics_page import CLAIMED, NOT_HERE, page

DOCS = pathlib.Path(__file__).parents[2] / "docs"

_WELL_KNOWN = "capacity_type nodepool arch os instance_type windows_build region zone"
_NODE = f"{_WELL_KNOWN} node_name phase managed"
_DISRUPTED = "reason nodepool capacity_type consolidation_policy termination_mode"
_POD = "name namespace owner node scheduled nodepool zone arch capacity_type instance_type phase ready managed"
_OBJECT = "namespace name group kind"

# Karpenter's metrics with their labels, without its prefix; those of conditions are its operator library's.
KARPENTER = {
    "nodeclaims_created_total": "reason nodepool min_values_relaxed",
    "nodeclaims_terminated_total": "nodepool capacity_type zone",
    "nodeclaims_disrupted_total": _DISRUPTED,
    "pods_disruption_initiated_total": _DISRUPTED,
    "nodeclaims_unhealthy_disrupted_total": "condition nodepool capacity_type image_id",
    "nodeclaims_instance_termination_duration_seconds": "nodepool",
    "nodeclaims_termination_duration_seconds": "nodepool",
    "nodes_created_total": "nodepool zone",
    "nodes_terminated_total": "nodepool zone",
    "nodes_drained_total": "nodepool",
    "nodes_termination_duration_seconds": "nodepool",
    "nodes_lifetime_duration_seconds": "nodepool",
    "nodes_allocatable": f"{_NODE} resource_type",
    "nodes_total_pod_requests": f"{_NODE} resource_type",
    "nodes_total_pod_limits": f"{_NODE} resource_type",
    "nodes_total_daemon_requests": f"{_NODE} resource_type",
    "nodes_total_daemon_limits": f"{_NODE} resource_type",
    "nodes_system_overhead": f"{_NODE} resource_type",
    "nodes_current_lifetime_seconds": _NODE,
    "cluster_utilization_percent": "resource_type",
    "nodepools_limit": "resource_type nodepool",
    "nodepools_usage": "resource_type nodepool",
    "nodepools_allowed_disruptions": "nodepool reason",
    "nodepools_nodes_consuming_budgets": "nodepool reason",
    "nodepools_cost_total": "nodepool",
    "nodepools_cost_tracker_errors_total": "nodepool",
    "pods_state": _POD,
    "pods_startup_duration_seconds": "",
    "pods_bound_duration_seconds": "",
    "pods_provisioning_bound_duration_seconds": "",
    "pods_provisioning_startup_duration_seconds": "",
    "pods_scheduling_decision_duration_seconds": "",
    "pods_unstarted_time_seconds": "name namespace",
    "pods_unbound_time_seconds": "name namespace",
    "pods_provisioning_unbound_time_seconds": "name namespace",
    "pods_provisioning_unstarted_time_seconds": "name namespace",
    "pods_provisioning_scheduling_undecided_time_seconds": "name namespace",
    "pods_eviction_requests_total": "code",
    "pods_drained_total": "reason",
    "scheduler_scheduling_duration_seconds": "controller",
    "scheduler_unschedulable_pods_count": "controller",
    "scheduler_queue_depth": "controller scheduling_id",
    "scheduler_unfinished_work_seconds": "controller scheduling_id",
    "scheduler_ignored_pods_count": "",
    "scheduler_pending_pods_by_effective_zone_count": "controller zone",
    "voluntary_disruption_decision_evaluation_duration_seconds": "reason consolidation_type",
    "voluntary_disruption_decisions_total": "decision reason consolidation_type",
    "voluntary_disruption_decisions_by_nodepool_total": "nodepool decision reason consolidation_type",
    "voluntary_disruption_eligible_nodes": "reason",
    "voluntary_disruption_consolidation_timeouts_total": "consolidation_type",
    "voluntary_disruption_failed_validations_total": "consolidation_type",
    "voluntary_disruption_queue_failures_total": "decision reason consolidation_type",
    "consolidation_score": "decision nodepool policy",
    "consolidation_moves_total": "decision nodepool policy",
    "cluster_state_node_count": "",
    "cluster_state_synced": "",
    "cluster_state_unsynced_time_seconds": "",
    "cloudprovider_duration_seconds": "controller method provider",
    "cloudprovider_errors_total": "controller method provider error",
    "build_info": "version goversion goarch commit",
}
OPERATOR = {
    "operator_status_condition_count": f"{_OBJECT} type status reason",
    "operator_status_condition_current_status_seconds": f"{_OBJECT} type status reason",
    "operator_status_condition_transition_seconds": "group kind type status",
    "operator_status_condition_transitions_total": "group kind type status reason",
    "operator_termination_current_time_seconds": _OBJECT,
    "operator_termination_duration_seconds": "group kind",
}


def test_names_and_labels_are_karpenters_and_none_is_forgotten() -> None:
    """Every metric of Karpenter's is ours with exactly its labels, or stands on the page among those that are not here."""
    facts = {f"karpenter_{name}": set(labels.split()) for name, labels in KARPENTER.items()}
    facts |= {name: set(labels.split()) for name, labels in OPERATOR.items()}
    ours = {each.name: set(each.labels) for each in CLAIMED if not each.name.startswith("growth_")}
    assert ours == {name: labels for name, labels in facts.items() if name not in NOT_HERE}
    assert set(NOT_HERE) <= set(facts)


def test_every_metric_is_claimed_once() -> None:
    """No two have one name, and each says what it is."""
    names = [each.name for each in CLAIMED]
    assert len(names) == len(set(names))
    assert all(each.help for each in CLAIMED)


def test_the_page_about_metrics_is_what_is_declared() -> None:
    """The documentation is made, not kept: `python -m growth.operator.metrics_page > docs/metrics.md`."""
    assert (DOCS / "metrics.md").read_text() == page()
