"""How much memory jobs, queues, clients and buffers take, and what that forbids."""
