"""The result backend `disque://` of Celery.

```python
app = Celery("shop", broker="disque://host1,host2", backend="disque://host1,host2")
```

Celery finds it by the entry points `disque` and `disques`. The nodes keep the states and results of tasks, and `get`
waits without polling. The package uses Celery and the client, and nothing else of `disqued`.
"""
