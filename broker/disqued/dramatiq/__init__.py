"""Dramatiq on this broker: actors run unchanged when their broker is a `DisqueBroker`.

```python
import dramatiq
from disqued.dramatiq import DisqueBroker

dramatiq.set_broker(DisqueBroker(url="disque://host1,host2"))
```

`broker` adds messages and consumes them, `results` keeps what actors return, and `rate_limits` counts for rate limiters
and barriers. The package needs the extra `dramatiq` and imports nothing from the server.
"""

from disqued.dramatiq.broker import DisqueBroker

__all__ = ["DisqueBroker"]
