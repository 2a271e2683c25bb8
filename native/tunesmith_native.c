/* Repeats known products of torch tensors on a GPU without running Python.

   `Products` keeps, for each layout of a, b, out and the scales of a and b on a stream, the steps that the Python path of
   `matmul` took: a kernel's launch, or a call of a C library. A later call with that layout writes its addresses into the
   kept arguments and takes the steps again. Where torch's operator makes the product, a Python function is kept instead of
   steps. Whatever `Products` does not know it answers with None, and the caller takes the Python path.
   tunesmith.library.gemm._native_products is the caller and describes the arguments.

   Tensors are read through the C exchange interface of DLPack 1.3, which torch.Tensor offers as a capsule. Sources:
   dlpack.h for that interface, cuda.h for CUlaunchConfig. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- DLPack ------------------------------------------------------------------------------------------------------ */

typedef struct {
    void *data;
    struct { int32_t type, id; } device;
    int32_t ndim;
    struct { uint8_t code, bits; uint16_t lanes; } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} Tensor;

typedef struct {
    uint32_t major, minor;
    void *previous;
    void *allocate, *take_managed, *give_managed;
    int (*read)(void *object, Tensor *tensor);
    int (*current_stream)(int32_t device_type, int32_t device_id, void **stream);
} Exchange;

enum { INTERFACE = 2 };           /* raised when the caller must call in another way */
enum { CAPSULE_MAJOR = 1, ON_CUDA = 2, MOST_AXES = 3 };
enum { FIRST_OPTIONAL = 2, FIRST_SCALE = 3, TENSORS = 5 };      /* a call's tensors: a, b, out, scale_a, scale_b */

/* ---- known products ---------------------------------------------------------------------------------------------- */

enum { STREAM, A, B, OUT, WORKSPACE, SCALE_A, SCALE_B, SLOTS };  /* what may be written into an argument */
enum { MOST_WORDS = 24, MOST_WRITES = 16, ALIGNED = 128, TABLE = 8192, MOST_KNOWN = 4096, ADDRESS_BITS = 15 };

typedef struct { int32_t slot; uint64_t offset; uint64_t *target; } Write;

typedef int (*Words)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                     uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                     uint64_t, uint64_t, uint64_t, uint64_t);

/* A call of a C function whose arguments are integers and pointers. In the calling conventions of Linux on x86-64 and
   AArch64 each takes a register or 8 bytes of the stack, so that one prototype serves all, and words that the function
   does not have are ignored. */
typedef struct {
    Words function;
    uint64_t words[MOST_WORDS];
    int writes;
    Write write[MOST_WRITES];     /* into words, or into the storage that words point to */
    int maps;
    Write map[4];                 /* tensor maps among the parameters: the driver writes the address into them */
    uint64_t mapped[4];           /* the addresses that they hold now */
    void *storage;                /* a kernel's parameters and launch configuration; words point into it */
} Step;

typedef struct {
    int32_t ndim, device_type, device_id;
    uint32_t dtype;               /* code, bits and lanes */
    uint32_t misaligned;          /* the last bits of the address */
    uint32_t unused;              /* no padding: keys are compared byte by byte */
    int64_t shape[MOST_AXES], strides[MOST_AXES];
} Layout;

typedef struct {
    Layout a, b, out, scale_a, scale_b;                    /* all zeros for a missing one */
    uint64_t stream;
    uint64_t setting;             /* the hash of torch's setting for a's type; 0 if there is none */
} Key;

typedef struct {
    Key key;
    uint64_t hash, context, workspace, reads[2], writes;   /* bytes that are read from a and b, and written to out */
    int steps, pins, forgotten;   /* calls under way, which may not lose their steps; whether the last one frees them */
    Step *step;
    PyObject *like, *owner;       /* torch.empty_like(like) makes the result; owner keeps what the steps point to, or
                                     without steps makes the product */
} Known;

typedef struct {
    PyObject_HEAD
    Exchange *exchange;
    PyObject *types;              /* the types of tensors that are taken */
    PyObject *settings;           /* (code, bits, function) for each type of which torch has a setting */
    PyObject *grad_enabled, *empty_like, *names, *format, *failed;
    Words push, pop, capturing, move;
    Known *table[TABLE];
    Py_ssize_t count;
    pthread_mutex_t mutex;        /* held while steps are taken, with the interpreter's lock released */
} Products;

static PyObject *requires_grad;

static uint64_t hash_of(const Key *key)
{
    const uint64_t *words = (const uint64_t *)key;
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < sizeof *key / sizeof *words; ++i) {
        hash = (hash ^ words[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash;
}

static void forget(Known *known)
{
    known->forgotten = 1;
    if (known->pins) return;
    for (int i = 0; i < known->steps; ++i) free(known->step[i].storage);
    free(known->step);
    Py_XDECREF(known->like);
    Py_XDECREF(known->owner);
    free(known);
}

static void forget_all(Products *self)
{
    for (int i = 0; i < TABLE; ++i) {
        Known *known = self->table[i];
        self->table[i] = NULL;
        if (known) forget(known);
    }
    self->count = 0;
}

/* Whether an object is a tensor that may be read. 0: no. -1: an error is set. */
static int takes(Products *self, PyObject *x)
{
    PyObject *type = (PyObject *)Py_TYPE(x);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->types); ++i)
        if (PyTuple_GET_ITEM(self->types, i) == type) {
            PyObject *flag = PyObject_GetAttr(x, requires_grad);
            if (!flag) return -1;
            int requires = flag != Py_False;
            Py_DECREF(flag);
            if (!requires) return 1;
            PyObject *enabled = PyObject_CallNoArgs(self->grad_enabled);
            if (!enabled) return -1;
            int refused = enabled != Py_False;
            Py_DECREF(enabled);
            return !refused;
        }
    return 0;
}

/* Read a tensor's address and layout. 0: it has another kind of layout, or fewer axes. -1: an error is set. */
static int read_tensor(Products *self, PyObject *x, int least_axes, Layout *layout, uint64_t *address)
{
    Tensor tensor;
    int taken = takes(self, x);
    if (taken < 1) return taken;
    if (self->exchange->read(x, &tensor)) return -1;
    if (tensor.device.type != ON_CUDA && self->capturing) return 0;
    if (tensor.ndim < least_axes || tensor.ndim > MOST_AXES || (tensor.ndim && !tensor.strides)) return 0;
    *address = (uint64_t)(uintptr_t)tensor.data + tensor.byte_offset;
    layout->ndim = tensor.ndim;
    layout->device_type = tensor.device.type;
    layout->device_id = tensor.device.id;
    layout->dtype = tensor.dtype.code | (uint32_t)tensor.dtype.bits << 8 | (uint32_t)tensor.dtype.lanes << 16;
    layout->misaligned = *address & ADDRESS_BITS;
    for (int i = 0; i < tensor.ndim; ++i) {
        layout->shape[i] = tensor.shape[i];
        layout->strides[i] = tensor.strides[i];
    }
    return 1;
}

/* What torch is set to for the type of a. -1: an error is set. */
static int read_setting(Products *self, Key *key)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->settings); ++i) {
        unsigned int code, bits;
        PyObject *function;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(self->settings, i), "IIO", &code, &bits, &function)) return -1;
        if (key->a.dtype != (code | bits << 8 | 1 << 16)) continue;
        PyObject *value = PyObject_CallNoArgs(function);
        if (!value) return -1;
        Py_hash_t hash = PyObject_Hash(value);
        Py_DECREF(value);
        if (hash == -1) return -1;
        key->setting = (uint64_t)hash;
        return 0;
    }
    return 0;
}

/* The key and the addresses of a call with a, b, out and their scales. 0: the call is not one of ours. -1: an error is
   set. */
static int read_call(Products *self, PyObject *const *tensors, Key *key, uint64_t *address)
{
    static const int slots[] = {A, B, OUT, SCALE_A, SCALE_B};
    int taken;
    void *stream;
    memset(key, 0, sizeof *key);
    Layout *layouts[] = {&key->a, &key->b, &key->out, &key->scale_a, &key->scale_b};
    for (int i = 0; i < TENSORS; ++i) {
        if (tensors[i] == Py_None && i >= FIRST_OPTIONAL) continue;
        taken = read_tensor(self, tensors[i], i < FIRST_SCALE ? 2 : 0, layouts[i], &address[slots[i]]);
        if (taken < 1) return taken;
    }
    if (read_setting(self, key)) return -1;
    if (self->exchange->current_stream(key->a.device_type, key->a.device_id, &stream)) return -1;
    key->stream = address[STREAM] = (uint64_t)(uintptr_t)stream;
    return 1;
}

static Known **find(Products *self, const Key *key, uint64_t hash)
{
    uint64_t i = hash % TABLE;
    while (self->table[i] && (self->table[i]->hash != hash || memcmp(&self->table[i]->key, key, sizeof *key)))
        i = (i + 1) % TABLE;
    return &self->table[i];
}

static int call_words(Words function, const uint64_t *w)
{
    return function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13], w[14], w[15],
                    w[16], w[17], w[18], w[19], w[20], w[21], w[22], w[23]);
}

static int call_with(Words function, uint64_t first, uint64_t second)
{
    uint64_t words[MOST_WORDS] = {first, second};
    return call_words(function, words);
}

/* Take the steps. Returns the number of the step that failed, counted from 1, with its status; else 0. */
static int take_steps(Products *self, Known *known, const uint64_t *address, int *status)
{
    int failed = 0;
    uint64_t popped;
    if (self->push && (*status = call_with(self->push, known->context, 0))) return known->steps + 1;
    for (int i = 0; i < known->steps && !failed; ++i) {
        Step *step = &known->step[i];
        for (int j = 0; j < step->writes; ++j)
            *step->write[j].target = address[step->write[j].slot] + step->write[j].offset;
        for (int j = 0; j < step->maps && !failed; ++j) {
            uint64_t next = address[step->map[j].slot] + step->map[j].offset;
            if (next == step->mapped[j]) continue;
            if ((*status = call_with(self->move, (uint64_t)(uintptr_t)step->map[j].target, next))) failed = i + 1;
            else step->mapped[j] = next;
        }
        if (!failed && (*status = call_words(step->function, step->words))) failed = i + 1;
    }
    if (self->pop) call_with(self->pop, (uint64_t)(uintptr_t)&popped, 0);
    return failed;
}

/* ---- the type ---------------------------------------------------------------------------------------------------- */

static int overlap(const Known *known, const uint64_t *address)
{
    for (int i = 0; i < 2; ++i)
        if (address[A + i] < address[OUT] + known->writes && address[OUT] < address[A + i] + known->reads[i]) return 1;
    return 0;
}

static int is_captured(Products *self, uint64_t stream)
{
    int32_t captured = 0;
    return call_with(self->capturing, stream, (uint64_t)(uintptr_t)&captured) || captured;
}

/* The new result's tensor, its address in *address. NULL: an error is set. */
static PyObject *new_result(Products *self, Known *known, uint64_t *address)
{
    Tensor tensor;
    PyObject *arguments[] = {known->like, self->format};
    PyObject *result = PyObject_Vectorcall(self->empty_like, arguments, 1, self->names);
    if (!result) return NULL;
    if (self->exchange->read(result, &tensor)) {
        Py_DECREF(result);
        return NULL;
    }
    *address = (uint64_t)(uintptr_t)tensor.data + tensor.byte_offset;
    return result;
}

static PyObject *launched(Products *self, Known *known, PyObject *out, uint64_t *address)
{
    int failed, forgotten, status = 0;
    PyObject *result = out == Py_None ? new_result(self, known, &address[OUT]) : Py_NewRef(out);
    if (!result) return NULL;
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->mutex);
    forgotten = known->forgotten;   /* another thread may have cleared the table: see `clear` */
    failed = forgotten ? 0 : take_steps(self, known, address, &status);
    pthread_mutex_unlock(&self->mutex);
    Py_END_ALLOW_THREADS
    if (!failed && !forgotten) return result;
    Py_DECREF(result);
    if (forgotten) Py_RETURN_NONE;
    PyObject *raised = PyObject_CallFunction(self->failed, "Oii", known->owner, failed - 1, status);
    if (raised) {
        Py_DECREF(raised);
        PyErr_Format(PyExc_RuntimeError, "step %d of a product failed with status %d", failed, status);
    }
    return NULL;
}

/* A product without steps, by its function. */
static PyObject *make_by_function(Known *known, PyObject *const *tensors)
{
    return PyObject_Vectorcall(known->owner, tensors, TENSORS, NULL);
}

PyDoc_STRVAR(repeat_doc,
"repeat(a, b, out, scale_a, scale_b) -> the product, or None if it is not known. All but a and b may be None.");

static PyObject *repeat(Products *self, PyObject *const *tensors, Py_ssize_t count)
{
    Key key;
    uint64_t address[SLOTS] = {0};
    if (count != TENSORS) return PyErr_Format(PyExc_TypeError, "repeat takes a, b, out and two scales");
    int taken = self->count ? read_call(self, tensors, &key, address) : 0;
    if (taken < 0) return NULL;
    Known *known = taken ? *find(self, &key, hash_of(&key)) : NULL;
    if (!known || (tensors[2] != Py_None && overlap(known, address))) Py_RETURN_NONE;
    if ((known->workspace || !known->steps) && self->capturing && is_captured(self, address[STREAM])) Py_RETURN_NONE;
    address[WORKSPACE] = known->workspace;
    ++known->pins;
    PyObject *result = known->steps ? launched(self, known, tensors[2], address) : make_by_function(known, tensors);
    if (!--known->pins && known->forgotten) forget(known);
    return result;
}

static int read_writes(PyObject *sequence, int most, uint64_t *base, Write *writes, int *count)
{
    Py_ssize_t given = PySequence_Size(sequence);
    if (given < 0) return -1;
    if (*count + given > most) {
        PyErr_SetString(PyExc_ValueError, "too many addresses in a step");
        return -1;
    }
    for (Py_ssize_t i = 0; i < given; ++i) {
        int index, slot;
        unsigned long long offset;
        PyObject *item = PySequence_GetItem(sequence, i);
        int parsed = item && PyArg_ParseTuple(item, "iiK", &index, &slot, &offset);
        Py_XDECREF(item);
        if (!parsed) return -1;
        if (slot < 0 || slot >= SLOTS || index < 0) {
            PyErr_SetString(PyExc_ValueError, "no such slot");
            return -1;
        }
        writes[(*count)++] = (Write){slot, offset, base + index};
    }
    return 0;
}

/* A kernel: its launch configuration, then its parameters, each at a multiple of ALIGNED bytes, in storage of the step. */
static int read_kernel(PyObject *kernel, Step *step)
{
    const char *configuration;
    Py_ssize_t size;
    int stream_offset;
    PyObject *parameters, *pointers, *maps;
    if (!PyArg_ParseTuple(kernel, "y#iO!OO", &configuration, &size, &stream_offset, &PyTuple_Type, &parameters,
                          &pointers, &maps))
        return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(parameters);
    size_t bytes = ALIGNED * 2 + sizeof(uint64_t) * (size_t)(count + 1);
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!PyBytes_Check(PyTuple_GET_ITEM(parameters, i)))
            return PyErr_SetString(PyExc_TypeError, "parameters are bytes"), -1;
        bytes += (size_t)(PyBytes_GET_SIZE(PyTuple_GET_ITEM(parameters, i)) / ALIGNED + 1) * ALIGNED;
    }
    bytes = (bytes / ALIGNED + 1) * ALIGNED;
    char *storage = step->storage = aligned_alloc(ALIGNED, bytes);
    if (!storage || size > ALIGNED || stream_offset < 0 || stream_offset + 8 > size)
        return PyErr_SetString(PyExc_ValueError, "a launch configuration that does not fit"), -1;
    memset(storage, 0, bytes);
    memcpy(storage, configuration, (size_t)size);
    uint64_t *list = (uint64_t *)(storage + ALIGNED);
    char *next = storage + ALIGNED + (sizeof(uint64_t) * (size_t)(count + 1) / ALIGNED + 1) * ALIGNED;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject *parameter = PyTuple_GET_ITEM(parameters, i);
        memcpy(next, PyBytes_AS_STRING(parameter), (size_t)PyBytes_GET_SIZE(parameter));
        list[i] = (uint64_t)(uintptr_t)next;
        next += (PyBytes_GET_SIZE(parameter) / ALIGNED + 1) * ALIGNED;
    }
    step->words[0] = (uint64_t)(uintptr_t)storage;
    step->words[2] = (uint64_t)(uintptr_t)list;
    int first = step->writes;
    if (read_writes(pointers, MOST_WRITES - 1, list, step->write, &step->writes)) return -1;
    if (read_writes(maps, 4, list, step->map, &step->maps)) return -1;
    for (int i = first; i < step->writes; ++i) {
        if (step->write[i].target >= list + count) return PyErr_SetString(PyExc_ValueError, "no such parameter"), -1;
        step->write[i].target = (uint64_t *)(uintptr_t)*step->write[i].target;
    }
    for (int i = 0; i < step->maps; ++i) {
        if (step->map[i].target >= list + count) return PyErr_SetString(PyExc_ValueError, "no such parameter"), -1;
        step->map[i].target = (uint64_t *)(uintptr_t)*step->map[i].target;
    }
    step->write[step->writes++] = (Write){STREAM, 0, (uint64_t *)(storage + stream_offset)};
    return 0;
}

/* A step from Python: (function, words, writes into the words, a kernel or None). */
static int read_step(PyObject *described, Step *step)
{
    unsigned long long function;
    PyObject *words, *writes, *kernel;
    if (!PyArg_ParseTuple(described, "KO!OO", &function, &PyTuple_Type, &words, &writes, &kernel)) return -1;
    if (PyTuple_GET_SIZE(words) > MOST_WORDS) return PyErr_SetString(PyExc_ValueError, "too many words"), -1;
    step->function = (Words)(uintptr_t)function;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(words); ++i)
        step->words[i] = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(words, i));
    if (PyErr_Occurred() || read_writes(writes, MOST_WRITES, step->words, step->write, &step->writes)) return -1;
    for (int i = 0; i < step->writes; ++i)
        if (step->write[i].target >= step->words + MOST_WORDS)
            return PyErr_SetString(PyExc_ValueError, "no such word"), -1;
    return kernel == Py_None ? 0 : read_kernel(kernel, step);
}

PyDoc_STRVAR(learn_doc,
"learn(a, b, out, scale_a, scale_b, steps, context, workspace, read_a, read_b, written, like, owner)\n\n"
"Keep the steps of a product for later calls with these layouts on torch's current stream. Without steps,\n"
"owner(a, b, out, scale_a, scale_b) makes it, unless the stream is being captured.");

static PyObject *learn(Products *self, PyObject *arguments)
{
    PyObject *tensors[TENSORS], *steps, *like, *owner;
    unsigned long long context, workspace, read_a, read_b, written;
    if (!PyArg_ParseTuple(arguments, "OOOOOO!KKKKKOO", &tensors[0], &tensors[1], &tensors[2], &tensors[3], &tensors[4],
                          &PyTuple_Type, &steps, &context, &workspace, &read_a, &read_b, &written, &like, &owner))
        return NULL;
    Key key;
    uint64_t address[SLOTS] = {0};
    if (!self->exchange) return PyErr_Format(PyExc_TypeError, "is not initialised");
    int taken = read_call(self, tensors, &key, address);
    if (taken < 0) return NULL;
    if (!taken) Py_RETURN_FALSE;
    Known *known = calloc(1, sizeof *known);
    if (!known) return PyErr_NoMemory();
    known->like = Py_NewRef(like);
    known->owner = Py_NewRef(owner);
    known->step = calloc((size_t)PyTuple_GET_SIZE(steps) + 1, sizeof *known->step);
    if (!known->step) {
        forget(known);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(steps); ++i) {
        known->steps = (int)i + 1;
        if (read_step(PyTuple_GET_ITEM(steps, i), &known->step[i])) {
            forget(known);
            return NULL;
        }
    }
    known->key = key;
    known->hash = hash_of(&key);
    known->context = context;
    known->workspace = workspace;
    known->reads[0] = read_a;
    known->reads[1] = read_b;
    known->writes = written;
    if (self->count >= MOST_KNOWN) forget_all(self);
    Known **place = find(self, &key, known->hash);
    Known *former = *place;
    *place = known;
    if (former) forget(former);
    else ++self->count;
    Py_RETURN_TRUE;
}

PyDoc_STRVAR(clear_doc,
"Forget all products. When this returns, no thread takes their steps any more, so their workspaces may be released.");

static PyObject *clear(Products *self, PyObject *unused)
{
    (void)unused;
    forget_all(self);
    Py_BEGIN_ALLOW_THREADS
    pthread_mutex_lock(&self->mutex);
    pthread_mutex_unlock(&self->mutex);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

PyDoc_STRVAR(clear_in_child_doc, "Forget all products in a forked child, where no other thread takes steps.");

static PyObject *clear_in_child(Products *self, PyObject *unused)
{
    (void)unused;
    pthread_mutex_init(&self->mutex, NULL);
    forget_all(self);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(products_doc,
"Products(capsule, types, grad_enabled, settings, empty_like, format, failed, push, pop, capturing, move)\n\n"
"`capsule` is torch.Tensor.__dlpack_c_exchange_api__, `types` the types of tensors that are taken. `settings` has a\n"
"triple (code, bits, function) for each of DLPack's types of which torch has a setting, which is part of a product.\n"
"grad_enabled and empty_like are functions of torch, format is torch.contiguous_format. failed(owner, step, status)\n"
"raises the error of a step. The last four are addresses of cuCtxPushCurrent, cuCtxPopCurrent, cuStreamIsCapturing and\n"
"cuTensorMapReplaceAddress, or 0.");

static int products_init(Products *self, PyObject *arguments, PyObject *named)
{
    PyObject *capsule, *types, *grad_enabled, *settings, *empty_like, *format, *failed;
    unsigned long long push, pop, capturing, move;
    if (named && PyDict_GET_SIZE(named)) return PyErr_SetString(PyExc_TypeError, "no keywords"), -1;
    if (self->exchange) return PyErr_SetString(PyExc_TypeError, "is initialised already"), -1;
    if (!PyArg_ParseTuple(arguments, "OO!OO!OOOKKKK", &capsule, &PyTuple_Type, &types, &grad_enabled, &PyTuple_Type,
                          &settings, &empty_like, &format, &failed, &push, &pop, &capturing, &move))
        return -1;
    Exchange *exchange = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    if (!exchange) return -1;
    if (exchange->major != CAPSULE_MAJOR)
        return PyErr_Format(PyExc_ValueError, "DLPack %u is unknown", exchange->major), -1;
    pthread_mutex_init(&self->mutex, NULL);
    self->exchange = exchange;
    self->types = Py_NewRef(types);
    self->grad_enabled = Py_NewRef(grad_enabled);
    self->settings = Py_NewRef(settings);
    self->empty_like = Py_NewRef(empty_like);
    self->format = Py_NewRef(format);
    self->failed = Py_NewRef(failed);
    self->names = Py_BuildValue("(s)", "memory_format");
    self->push = (Words)(uintptr_t)push;
    self->pop = (Words)(uintptr_t)pop;
    self->capturing = (Words)(uintptr_t)capturing;
    self->move = (Words)(uintptr_t)move;
    return self->names ? 0 : -1;
}

static void products_free(Products *self)
{
    forget_all(self);
    PyObject *kept[] = {self->types, self->grad_enabled, self->settings, self->empty_like, self->names, self->format,
                        self->failed};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; ++i) Py_XDECREF(kept[i]);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef products_methods[] = {
    {"repeat", (PyCFunction)(void (*)(void))repeat, METH_FASTCALL, repeat_doc},
    {"learn", (PyCFunction)learn, METH_VARARGS, learn_doc},
    {"clear", (PyCFunction)clear, METH_NOARGS, clear_doc},
    {"clear_in_child", (PyCFunction)clear_in_child, METH_NOARGS, clear_in_child_doc},
    {NULL},
};

static PyTypeObject products_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tunesmith_native.Products",
    .tp_doc = products_doc,
    .tp_basicsize = sizeof(Products),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)products_init,
    .tp_dealloc = (destructor)products_free,
    .tp_methods = products_methods,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "tunesmith_native", "Repeats known products of torch tensors.", -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_tunesmith_native(void)
{
    requires_grad = PyUnicode_InternFromString("requires_grad");
    PyObject *created = requires_grad ? PyModule_Create(&module) : NULL;
    if (created &&
        (PyModule_AddType(created, &products_type) || PyModule_AddIntConstant(created, "INTERFACE", INTERFACE)))
        Py_CLEAR(created);
    return created;
}
