/* Sums the leaves that rows of features reach in an ensemble of regression trees.

   A tree at a time is walked for many rows, one level after the other: its nodes stay in the nearest cache, and the steps
   of different rows do not wait for each other. tunesmith.models.choice.trees is the caller, and describes the nodes. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A row goes on to `child`, or to `child + 1` if its feature is above the threshold. A leaf is its own child. */
typedef struct { float threshold; int32_t feature, child; float value; } Node;
_Static_assert(sizeof(Node) == 16, "a node has the layout of NODE in trees.py");

typedef struct { int32_t root, depth; } Tree;

typedef struct {
    PyObject_HEAD
    Py_ssize_t trees, features;   /* rows have at least so many features */
    Tree *tree;
    Node *nodes;
} Trees;

enum { BLOCK = 256 };   /* rows that are walked together */

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* A contiguous array whose items have so many bytes and, but for records, this format. */
static int take(PyObject *array, const char *format, Py_ssize_t bytes, int flags, Py_buffer *taken)
{
    if (PyObject_GetBuffer(array, taken, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | flags) < 0) return -1;
    const char *found = taken->format ? taken->format : "B";
    if (taken->itemsize == bytes && (!*format || !strcmp(found, format)) && (uintptr_t)taken->buf % (bytes < 8 ? 4 : 8) == 0)
        return 0;
    PyErr_Format(PyExc_ValueError, "an array of %zd bytes an item, not aligned, or of type %s", taken->itemsize, found);
    PyBuffer_Release(taken);
    return -1;
}

/* The depth of the tree of nodes from `root` to `end`; -1 if a node leads outside, back, or where another one leads. */
static int32_t depth_of(const Node *nodes, int32_t root, int32_t end, int32_t *level)
{
    int32_t deepest = 0;
    if (root < 0 || root >= end) return -1;
    for (int32_t i = root; i < end; ++i) level[i] = i == root ? 0 : -1;
    for (int32_t i = root; i < end; ++i) {
        const Node *node = nodes + i;
        if (node->feature < 0 || level[i] < 0) return -1;
        if (isinf(node->threshold) && node->threshold > 0) {
            if (node->child != i) return -1;
            continue;
        }
        if (isnan(node->threshold) || node->child <= i || node->child > end - 2) return -1;
        if (level[node->child] >= 0 || level[node->child + 1] >= 0) return -1;
        level[node->child] = level[node->child + 1] = level[i] + 1;
        if (level[i] + 1 > deepest) deepest = level[i] + 1;
    }
    return deepest;
}

static int fill(Trees *self, const Node *nodes, Py_ssize_t count, const int32_t *roots, Py_ssize_t trees)
{
    int32_t *level = malloc((count + 1) * sizeof *level);
    self->nodes = malloc((count + 1) * sizeof *nodes);
    self->tree = malloc((trees + 1) * sizeof *self->tree);
    if (!level || !self->nodes || !self->tree) return free(level), PyErr_NoMemory(), -1;
    memcpy(self->nodes, nodes, count * sizeof *nodes);
    for (Py_ssize_t i = 0; i < count; ++i)
        if (self->nodes[i].feature >= self->features) self->features = (Py_ssize_t)self->nodes[i].feature + 1;
    for (Py_ssize_t t = 0; t < trees; ++t) self->tree[t].root = roots[t];
    self->tree[trees].root = (int32_t)count;
    for (Py_ssize_t t = 0; t < trees; ++t) {
        const int32_t root = self->tree[t].root, end = self->tree[t + 1].root;
        const int32_t depth = end > count || (!t && root) ? -1 : depth_of(self->nodes, root, end, level);
        if (depth < 0) return free(level), PyErr_Format(PyExc_ValueError, "tree %zd is no tree", t), -1;
        self->tree[t].depth = depth;
    }
    self->trees = trees;
    return free(level), 0;
}

PyDoc_STRVAR(trees_doc,
"Trees(nodes, roots)\n\n"
"`nodes` are records of a threshold (float32), a feature, a first child (both int32) and a leaf's value (float32), and\n"
"`roots` (int32) has the number of each tree's first node. Raises ValueError for nodes that are no trees.");

static int trees_init(Trees *self, PyObject *arguments, PyObject *named)
{
    PyObject *node_array, *root_array;
    Py_buffer nodes, roots;
    if (named && PyDict_GET_SIZE(named)) return PyErr_SetString(PyExc_TypeError, "no keywords"), -1;
    if (self->nodes) return PyErr_SetString(PyExc_TypeError, "is initialised already"), -1;
    if (!PyArg_ParseTuple(arguments, "OO", &node_array, &root_array)) return -1;
    if (take(node_array, "", sizeof(Node), 0, &nodes) < 0) return -1;
    if (take(root_array, "i", sizeof(int32_t), 0, &roots) < 0) return PyBuffer_Release(&nodes), -1;
    const Py_ssize_t count = nodes.len / (Py_ssize_t)sizeof(Node), trees = roots.len / (Py_ssize_t)sizeof(int32_t);
    int status = -1;
    if (count > INT32_MAX) PyErr_SetString(PyExc_ValueError, "there are too many nodes");
    else status = fill(self, nodes.buf, count, roots.buf, trees);
    PyBuffer_Release(&nodes);
    PyBuffer_Release(&roots);
    return status;
}

static void trees_free(Trees *self)
{
    free(self->tree);
    free(self->nodes);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static void add_leaves(const Trees *self, const float *rows, Py_ssize_t width, Py_ssize_t count, double *sums)
{
    int32_t at[BLOCK];
    for (Py_ssize_t t = 0; t < self->trees; ++t) {
        const Tree tree = self->tree[t];
        for (Py_ssize_t r = 0; r < count; ++r) at[r] = tree.root;
        for (int32_t level = 0; level < tree.depth; ++level)
            for (Py_ssize_t r = 0; r < count; ++r) {
                const Node *node = self->nodes + at[r];
                at[r] = node->child + (rows[r * width + node->feature] > node->threshold);
            }
        for (Py_ssize_t r = 0; r < count; ++r) sums[r] += self->nodes[at[r]].value;
    }
}

PyDoc_STRVAR(add_doc,
"add(rows, sums)\n\n"
"Add the leaves that each row reaches to its sum. The rows (float32) follow each other, and there are as many sums\n"
"(float64). Raises ValueError for rows that are too short.");

static PyObject *add(Trees *self, PyObject *arguments)
{
    PyObject *row_array, *sum_array;
    Py_buffer rows, sums;
    if (!self->nodes) return PyErr_SetString(PyExc_TypeError, "is not initialised"), NULL;
    if (!PyArg_ParseTuple(arguments, "OO", &row_array, &sum_array)) return NULL;
    if (take(row_array, "f", sizeof(float), 0, &rows) < 0) return NULL;
    if (take(sum_array, "d", sizeof(double), PyBUF_WRITABLE, &sums) < 0) return PyBuffer_Release(&rows), NULL;
    const Py_ssize_t count = sums.len / (Py_ssize_t)sizeof(double), numbers = rows.len / (Py_ssize_t)sizeof(float);
    const Py_ssize_t width = count ? numbers / count : self->features;
    const int fits = width >= self->features && numbers == count * width;
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t r = 0; r < count; r += BLOCK)
            add_leaves(self, (const float *)rows.buf + r * width, width, count - r < BLOCK ? count - r : BLOCK,
                       (double *)sums.buf + r);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&rows);
    PyBuffer_Release(&sums);
    if (!fits) return PyErr_SetString(PyExc_ValueError, "the rows are not as many as the sums, or too short"), NULL;
    Py_RETURN_NONE;
}

static PyMethodDef trees_methods[] = {
    {"add", (PyCFunction)add, METH_VARARGS, add_doc},
    {NULL},
};

static PyTypeObject trees_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tunesmith_trees.Trees",
    .tp_doc = trees_doc,
    .tp_basicsize = sizeof(Trees),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)trees_init,
    .tp_dealloc = (destructor)trees_free,
    .tp_methods = trees_methods,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "tunesmith_trees", "Walks ensembles of regression trees.", -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_tunesmith_trees(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddType(made, &trees_type)) Py_CLEAR(made);
    return made;
}
