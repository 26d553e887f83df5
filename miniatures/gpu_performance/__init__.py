"""What "GPU performance" builds small, and what it watches PyTorch with.

Mechanism: block_machine.
Mechanism: launch_queue.
Mechanism: questions.
Mechanism: launch_rules.
Mechanism: kernels.
"""
