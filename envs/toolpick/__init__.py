"""toolpick: reinforcement-learning environments for an LLM agent's choices about tools.

Importing the package registers its environments with Gymnasium; nothing heavy is loaded until one is made.
"""

from gymnasium.envs.registration import register

from toolpick.errors import InputError

__version__ = "0.1.0"
__all__ = ["InputError", "__version__"]

register(
    id="toolpick/Shortlist-v0",
    entry_point="toolpick.shortlist:ShortlistEnv",
    vector_entry_point="toolpick.shortlist_vector:ShortlistVectorEnv",
)
register(
    id="toolpick/ShortlistOneShot-v0",
    entry_point="toolpick.shortlist_one_shot:ShortlistOneShotEnv",
)
