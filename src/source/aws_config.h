/* aws_config.h: how to reach S3, as AWS's own tools find it out: variables of the environment, and profiles.
 *
 * AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE, AWS_REGION, AWS_DEFAULT_REGION,
 * AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_CA_BUNDLE, AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE; of a profile in
 * ~/.aws/credentials and ~/.aws/config: aws_access_key_id, aws_secret_access_key, aws_session_token, region,
 * endpoint_url, and addressing_style below s3.  Roles, single sign-on and the metadata of instances are not asked.
 */
#ifndef DR_SOURCE_AWS_CONFIG_H
#define DR_SOURCE_AWS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Texts are owned; NULL: not set. */
typedef struct dr__aws_config {
    char *key, *secret, *session; /* key NULL: requests are not signed */
    char *region;                 /* never NULL */
    char *endpoint;               /* NULL: Amazon's */
    char *ca_file;
    bool virtual_host; /* the bucket in the host's name where the endpoint is not Amazon's */
    bool path_style;   /* never there */
} dr__aws_config;

/* credentials: the name of a profile, "anonymous" for requests that are not signed, NULL: what the environment says.
 * DR_ERR_ARG where the profile is not there or there are no credentials; messages begin with `name`. */
dr_status dr__aws_config_find(const char *credentials, const char *name, dr__aws_config *out, dr_error *err);
void dr__aws_config_free(dr__aws_config *config);

/* The value of `key` of a profile in the text of such a file, or, below: of a key that is indented below the line
 * `below =`.  config: profiles are called [profile NAME], but for [default].  *found: the profile is there.  NULL: it
 * has no such key.  The caller frees it. */
char *dr__aws_profile_value(const char *text, size_t size, bool config, const char *profile, const char *below,
                            const char *key, bool *found);

#endif
