/* segment_stage.h: of samples on a drapps server, reads only the bytes of their images that the crop needs.
 *
 * A sample that is sent as it is stored need not be sent whole: where a note says how its image's header begins to be
 * decoded, and the store has seek points of it, the sample is planned first, and the server is asked for the segments
 * of entropy-coded data that the crop touches.  It gathers them from the file and decodes nothing.  They are those of
 * the draw of this sample and epoch, to the byte.  A server that finds the sample changed sends none, and the sample is
 * read whole, as it is whenever something is amiss with segments.
 *
 * What the segments of all samples of an epoch will be is known beforehand, too: the plan of an offload counts with it.
 */
#ifndef DR_EXEC_SEGMENT_STAGE_H
#define DR_EXEC_SEGMENT_STAGE_H

#include "exec/exec.h"
#include "format/remote_client.h"
#include "remote/offload_model.h"

typedef struct dr__segments {
    const dr_dataset *root; /* the set on the server; borrowed */
    dr__remote_client *client;
    bool on;
    atomic_uint_fast64_t samples, bytes, stored; /* received of these samples; as they are stored */
    atomic_uint_fast64_t failed;                 /* asked for in vain */
} dr__segments;

/* on: whether segments are wanted; e->ranges says whether they are possible. */
void dr__segments_open(dr__exec *e, dr__segments *s, const dr_dataset *root, dr__remote_client *client, bool on);

/* Reads the segments of a job's sample: bench->record has them as its part, and a head in place of the image.
 *
 * @return true: *status says whether they were read, or the epoch has to end; false: the sample has to be read whole.
 */
bool dr__segments_read(dr__exec *e, dr__segments *s, dr__workbench *bench, dr__job *job, dr_status *status,
                       dr_error *err);

/* After a sample was read whole, as it is stored: it is to be noted once it was decoded. */
void dr__segments_whole(dr__exec *e, dr__segments *s, dr__workbench *bench, uint64_t id);

/* What is drawn in the running epoch, for all ids; the caller frees *out (dr__free).  Stops when the loader does.
 *
 * @return DR_OK; DR_ERR_CANCELLED; DR_ERR_NOMEM. */
dr_status dr__segments_draw(dr__exec *e, const dr__segments *s, dr__offload_drawn **out, dr_error *err);

#endif
