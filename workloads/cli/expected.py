"""What was predicted of an arm, worked out again from the configuration that its record holds."""

from trainer.config import TrainConfig
from workloads.catalogue.prices import ON_DEMAND
from workloads.catalogue.topologies import parse_topology
from workloads.comparison.predicted import Predicted
from workloads.planning.predict import predict
from workloads.planning.prediction import Prediction, Range
from workloads.planning.work import Work


def expected(config: TrainConfig) -> Predicted | None:
    """The prediction of a run; None where the catalogue doesn't know the GPUs that it ran on."""
    try:
        topology = parse_topology(config.topology)
    except ValueError:
        return None
    work = Work(
        architecture=config.model.architecture,
        recipe=config.recipe,
        topology=topology,
        sequence_length=config.sequence_length,
        feed=config.data.feed,
    )
    region = None if topology.machine.is_local else ON_DEMAND.region
    return _shown(predict(work, steps=config.steps, region=region))


def _shown(prediction: Prediction) -> Predicted:
    step, sent = prediction.step, prediction.traffic.pod_sent_bytes
    return Predicted(
        step_s=step.step_s,
        sent_bytes_per_pod_and_step=Range(low=sent, expected=sent, high=sent),
        parts_s={
            "compute": step.compute_s.expected,
            "exposed communication": step.exposed_communication_s.expected,
            "host copies": step.host_copy_s.expected,
            "optimizer": step.optimizer_s.expected,
        },
    )
