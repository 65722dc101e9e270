/* fuzz_frame.c: any bytes as a frame of a drapps server.
 *
 * The head's size is made right, so that the payload is looked at; the checksum is not, because parsers do not see it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/desc.h"
#include "format/remote_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_sample(const dr__remote_head *head, const uint8_t *payload)
{
    dr__record record;
    dr_error err;
    dr__record_init(&record);
    record.max_bytes = 1 << 20;
    if (dr__remote_read_sample(head, payload, &record, &err) == DR_OK) {
        if (record.n_fields != head->n_fields)
            abort();
        for (int i = 0; i < record.n_fields; i++) {
            size_t bytes;
            volatile uint8_t sum = 0;
            if (!dr__desc_bytes_dense(&record.fields[i].desc, &bytes) || bytes > record.max_bytes)
                abort();
            for (size_t k = 0; k < bytes; k++) /* all of it can be read */
                sum = (uint8_t)(sum + record.fields[i].data[k]);
        }
    }
    dr__record_free(&record);
}

static void read_segments(const dr__remote_head *head, const uint8_t *payload)
{
    static dr__remote_range ranges[DR__REMOTE_RANGES];
    const uint8_t *bytes;
    int n;
    uint64_t total = 0;
    if (dr__remote_read_segments(head, payload, ranges, &n, &bytes, NULL) != DR_OK)
        return;
    for (int i = 0; i < n; i++)
        total += ranges[i].size;
    if (bytes + total != payload + head->size)
        abort();
}

static void read_error(const dr__remote_head *head, const uint8_t *payload)
{
    dr_error why;
    if (dr__remote_read_error(head, payload, &why, NULL) != DR_OK)
        return;
    if (why.status >= 0 || strlen(why.text) >= sizeof why.text)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[DR__REMOTE_HEAD];
    dr__remote_head head;
    if (size < DR__REMOTE_HEAD)
        return 0;
    const uint64_t left = size - DR__REMOTE_HEAD;
    memcpy(bytes, data, sizeof bytes);
    memcpy(bytes + 24, &left, sizeof left);
    if (dr__remote_parse_head(bytes, left, &head, NULL) != DR_OK)
        return 0;
    uint8_t *payload = malloc(left + 1); /* its own block, so that a read behind it is seen */
    memcpy(payload, data + DR__REMOTE_HEAD, left);
    dr__remote_check(&head, payload, NULL);
    read_sample(&head, payload);
    read_segments(&head, payload);
    read_error(&head, payload);
    free(payload);
    return 0;
}
