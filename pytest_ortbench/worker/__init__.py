"""What runs inside the measured interpreter: session, inputs, timing, memory, placement, facts.

The measured interpreter has ONNX Runtime and numpy and nothing of ours: the sources of this
package, of :mod:`pytest_ortbench.core` and of the wire format come through the conversation's own
channel. So module level imports here are the standard library and those three, and the syntax is
that of Python 3.10.
"""
