/* cpu_budget.c: accounts of CPU time. */
#include "serve/cpu_budget.h"

#include "base/compiler.h"

static double depth_of(const dr__cpu_budget *b)
{
    return b->cpus * DR__BUDGET_DEPTH_S;
}

void dr__budget_init(dr__cpu_budget *b, double cpus, uint64_t now_ns)
{
    *b = (dr__cpu_budget){ .cpus = cpus, .last_ns = now_ns };
    b->reserve = depth_of(b);
}

void dr__budget_join(dr__cpu_budget *b, dr__account *a)
{
    a->next = b->accounts;
    b->accounts = a;
}

void dr__budget_leave(dr__cpu_budget *b, dr__account *a)
{
    dr__budget_set_active(b, a, false);
    for (dr__account **at = &b->accounts; *at; at = &(*at)->next)
        if (*at == a) {
            *at = a->next;
            return;
        }
}

void dr__budget_set_active(dr__cpu_budget *b, dr__account *a, bool active)
{
    b->n_active += active - a->active;
    a->active = active;
}

/* Accounts that take more. */
static int n_open(const dr__cpu_budget *b)
{
    int n = 0;
    for (const dr__account *a = b->accounts; a; a = a->next)
        n += a->active && a->balance < depth_of(b);
    return n;
}

/* In rounds: each gives equal parts to the accounts that are not full; what these cannot keep is for the next one. */
void dr__budget_refill(dr__cpu_budget *b, uint64_t now_ns)
{
    if (now_ns <= b->last_ns)
        return;
    double seconds = (double)(now_ns - b->last_ns) * 1e-9 * b->cpus;
    b->last_ns = now_ns;
    for (int n = n_open(b); n > 0 && seconds > 1e-12; n = n_open(b)) {
        const double part = seconds / n;
        seconds = 0;
        for (dr__account *a = b->accounts; a; a = a->next) {
            if (!a->active || a->balance >= depth_of(b))
                continue;
            const double room = depth_of(b) - a->balance, taken = DR_MIN(room, part);
            a->balance = taken < room ? a->balance + taken : depth_of(b);
            seconds += part - taken;
        }
    }
    b->reserve = DR_MIN(b->reserve + seconds, depth_of(b));
}

bool dr__budget_may(const dr__cpu_budget *b, const dr__account *a)
{
    return b->cpus > 0 && a->balance >= 0 && a->balance + b->reserve > 0;
}

void dr__budget_charge(dr__cpu_budget *b, dr__account *a, uint64_t cpu_ns)
{
    const double seconds = (double)cpu_ns * 1e-9, own = DR_MIN(seconds, DR_MAX(a->balance, 0)),
                 common = DR_MIN(seconds - own, b->reserve);
    a->used_ns += cpu_ns;
    b->reserve -= common;
    a->balance -= seconds - common;
}
