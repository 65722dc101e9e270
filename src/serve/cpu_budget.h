/* cpu_budget.h: CPU time for the ops of a server, shared fairly by its clients (tenants).
 *
 * Time flows in at `cpus` seconds a second, in equal parts to the tenants that have work.  Each keeps a little of it
 * (DEPTH), so that short pauses lose nothing; what a full one cannot keep goes to the others, then to a common reserve,
 * which anybody may use.  Work is charged afterwards, by the CPU time that it took: a tenant that overdrew its account
 * waits until the debt is paid.  So no tenant can use up another's share, and none is idle while there is work.
 *
 * A pure module: times are the caller's, and so is the lock.
 */
#ifndef DR_SERVE_CPU_BUDGET_H
#define DR_SERVE_CPU_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define DR__BUDGET_DEPTH_S 0.25 /* seconds of the whole budget that an account holds */

/* The account of a tenant.  Begins as zeros. */
typedef struct dr__account {
    double balance; /* seconds; below 0: debt */
    bool active;    /* has work, or had some a moment ago */
    uint64_t used_ns;
    struct dr__account *next;
} dr__account;

typedef struct dr__cpu_budget {
    double cpus;
    double reserve;
    uint64_t last_ns;
    dr__account *accounts;
    int n_active;
} dr__cpu_budget;

void dr__budget_init(dr__cpu_budget *budget, double cpus, uint64_t now_ns);

/* A tenant comes or goes. */
void dr__budget_join(dr__cpu_budget *budget, dr__account *account);
void dr__budget_leave(dr__cpu_budget *budget, dr__account *account);

/* Whether a tenant has work.  Time flows in for those that have. */
void dr__budget_set_active(dr__cpu_budget *budget, dr__account *account, bool active);

/* Lets the time since the last call flow in. */
void dr__budget_refill(dr__cpu_budget *budget, uint64_t now_ns);

/* Whether a tenant may begin work now. */
bool dr__budget_may(const dr__cpu_budget *budget, const dr__account *account);

/* Work of a tenant took that much CPU time. */
void dr__budget_charge(dr__cpu_budget *budget, dr__account *account, uint64_t cpu_ns);

#endif
