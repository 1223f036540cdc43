/* The bodies of all jobs, and the proof that each comes back once and unchanged.
 *
 * A body is the job's number in 16 hexadecimal digits and then a fixed filler, so that a job can be checked without
 * keeping it. The number also finds the moment the job was due, from which its way through the broker is measured.
 */
#ifndef LEDGER_H
#define LEDGER_H

#include <stdint.h>

#include "text.h"

enum { NUMBER_DIGITS = 16 };

/* Numbers from `first` to before `limit` are added by this process; smaller ones may come back as well. */
void ledger_open(long first, long limit, int body_bytes);
/* The body of a job; valid until the next call. */
struct text ledger_body(long number, uint64_t due_ns);
/* What is wrong with a job that came back, or NULL. `waited_ns` is 0 for jobs of an earlier process. */
const char *ledger_deliver(struct text body, uint64_t now_ns, uint64_t *waited_ns);

#endif
