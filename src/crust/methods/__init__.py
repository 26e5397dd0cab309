"""Training methods by name: one file each, and this dictionary."""

from crust.methods.co_teaching import CoTeaching
from crust.methods.crust import Crust, CrustHalf, CrustPaper
from crust.methods.crust_released import CrustReleased
from crust.methods.crust_semi import CrustSemi
from crust.methods.d2l import D2L
from crust.methods.decoupling import Decoupling
from crust.methods.dividemix import DivideMix
from crust.methods.elr import Elr
from crust.methods.erm import Erm
from crust.methods.f_correction import FCorrection
from crust.methods.gce import Gce
from crust.methods.incv import Incv
from crust.methods.l_dmi import LDmi
from crust.methods.mentornet.mentornet import MentorNet
from crust.methods.mixup import Mixup
from crust.methods.oracle import Oracle
from crust.methods.random import Random
from crust.methods.sce import Sce
from crust.methods.small_loss import SmallLoss
from crust.methods.t_revision import TRevision
from crust.training.method import Method

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Crust,
        CrustSemi,
        CrustHalf,
        CrustPaper,
        CrustReleased,
        Erm,
        Mixup,
        FCorrection,
        Decoupling,
        CoTeaching,
        MentorNet,
        D2L,
        Incv,
        TRevision,
        LDmi,
        Gce,
        Sce,
        Elr,
        DivideMix,
        Random,
        SmallLoss,
        Oracle,
    )
}
