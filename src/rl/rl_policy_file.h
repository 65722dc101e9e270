/* rl_policy_file.h: policies as files.
 *
 *     "DRAPPSRL" | u32 version | u32 bytes of JSON | u32 numbers of an observation | u32 parameters | JSON
 *     | floats: means, scales, parameters | u64 XXH3 of all before it
 *
 * Little-endian.  The JSON is an object of `schema` (what the policy sees and does, by name), `network` and `facts` (how it
 * was trained and how well it does).  At most 256 KB.
 */
#ifndef DR_RL_RL_POLICY_FILE_H
#define DR_RL_RL_POLICY_FILE_H

#include "rl/rl_policy.h"

enum { DR__RL_FILE_VERSION = 1, DR__RL_FILE_MOST = 256 << 10 };

/* A new block (dr__free).  with_critic: keeps the critic, if there is one, for training to go on.  DR_ERR_LIMIT: the file
 * would be larger than 256 KB. */
dr_status dr__rl_policy_encode(const dr__rl_policy *policy, bool with_critic, uint8_t **out, size_t *size,
                               dr_error *err);

/* A new policy.  name: the file's, for texts.  DR_ERR_FORMAT: not such a file, damaged, or of another version. */
dr_status dr__rl_policy_decode(const void *data, size_t size, const char *name, dr__rl_policy **out, dr_error *err);

/* The same with a file; it appears when it is complete. */
dr_status dr__rl_policy_save(const dr__rl_policy *policy, bool with_critic, const char *path, dr_error *err);

/* want: the schema that it must have; NULL: any.  DR_ERR_FORMAT when it has another one; DR_ERR_NOT_FOUND: no such file. */
dr_status dr__rl_policy_load(const char *path, const dr__rl_spec *want, dr__rl_policy **out, dr_error *err);

#endif
