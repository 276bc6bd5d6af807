//! BPF objects, maps and congestion controls in the kernel as Python objects.

use crate::error;
use bpf::{Error, LoadedObject, Log, Map, ObjectFile, Records, Registration, Settings};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::collections::BTreeMap;

/// Constants that make a variant of an object (crates/bpf/src/control.rs).
#[pyclass(module = "elephan._native", name = "ControlSettings", frozen, skip_from_py_object)]
#[derive(Clone)]
struct PySettings(Settings);

#[pymethods]
impl PySettings {
    #[new]
    #[pyo3(signature = (name, parameters=BTreeMap::new(), label="", restricted=false, listens=false, linked=false))]
    fn new(
        name: String,
        parameters: BTreeMap<String, i64>,
        label: &str,
        restricted: bool,
        listens: bool,
        linked: bool,
    ) -> PySettings {
        PySettings(Settings { name, label: label.to_owned(), parameters, restricted, listens, linked })
    }
}

/// An object whose programs the kernel has taken, until it is closed or forgotten.
#[pyclass(module = "elephan._native", name = "BpfObject")]
struct PyObject {
    // In this order they go: the registration first.
    registration: Option<Registration>,
    records: BTreeMap<String, Records>,
    object: Option<LoadedObject>,
}

impl PyObject {
    fn object(&self) -> Result<&LoadedObject, Error> {
        self.object.as_ref().ok_or_else(|| Error::Lacks("programs any more: it was closed".to_owned()))
    }
}

#[pymethods]
impl PyObject {
    /// Opens and loads an object of BPF programs, as `settings` make it. BpfError: the kernel refuses it.
    #[new]
    #[pyo3(signature = (compiled, settings=None))]
    fn new(py: Python<'_>, compiled: &[u8], settings: Option<&PySettings>) -> PyResult<PyObject> {
        let opened = || {
            let mut object = ObjectFile::open(compiled, "algorithm")?;
            settings.map(|settings| object.configure(&settings.0)).transpose()?;
            Ok(object)
        };
        let object = py.detach(|| bpf::loaded(opened, Log::Statistics)).map_err(|error| error::bpf(py, &error))?;
        Ok(PyObject { registration: None, records: BTreeMap::new(), object: Some(object) })
    }

    /// Size of its variables; 0 without any.
    fn variables_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.object().map(LoadedObject::variables_bytes).map_err(|error| error::bpf(py, &error))
    }

    /// Its variables.
    fn variables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let read = self.object().and_then(LoadedObject::variables);
        read.map(|bytes| PyBytes::new(py, &bytes)).map_err(|error| error::bpf(py, &error))
    }

    /// Sets its variables, runs a program of type syscall once, and returns the variables.
    fn run<'py>(&self, py: Python<'py>, program: &str, variables: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let run = self.object().and_then(|object| object.run(program, variables));
        run.map(|bytes| PyBytes::new(py, &bytes)).map_err(|error| error::bpf(py, &error))
    }

    /// Begins to take the records of the ring buffer `map`.
    fn record(&mut self, py: Python<'_>, map: &str) -> PyResult<()> {
        let records = self.object().and_then(|object| object.records(map)).map_err(|error| error::bpf(py, &error))?;
        self.records.insert(map.to_owned(), records);
        Ok(())
    }

    /// Empties the ring buffers, so that there is room for more.
    fn collect(&self, py: Python<'_>) -> PyResult<()> {
        let done = self.records.values().try_for_each(Records::collect);
        done.map_err(|error| error::bpf(py, &error))
    }

    /// The records of a ring buffer since the last call, one behind the other.
    fn records<'py>(&self, py: Python<'py>, map: &str) -> PyResult<Bound<'py, PyBytes>> {
        let records = self.records.get(map).ok_or_else(|| Error::Lacks(format!("records of {map}")));
        let taken = records.and_then(Records::take).map_err(|error| error::bpf(py, &error))?;
        Ok(PyBytes::new(py, &taken))
    }

    /// Registers its congestion control until it is closed.
    fn register(&mut self, py: Python<'_>) -> PyResult<()> {
        let object = self.object.as_mut().ok_or_else(|| Error::Lacks("programs any more: it was closed".to_owned()));
        self.registration = Some(object.and_then(LoadedObject::register).map_err(|error| error::bpf(py, &error))?);
        Ok(())
    }

    /// Unregisters its control and releases programs and maps.
    fn close(&mut self) {
        self.registration = None;
        self.records.clear();
        self.object = None;
    }
}

/// A map in the kernel, held open.
#[pyclass(module = "elephan._native", name = "BpfMap", frozen)]
struct PyMap(Map);

#[pymethods]
impl PyMap {
    /// Opens the map with this number. BpfError: there is none, or it may not be opened.
    #[new]
    fn new(py: Python<'_>, id: u32) -> PyResult<PyMap> {
        Map::open(id).map(PyMap).map_err(|error| error::bpf(py, &error))
    }

    /// Its number.
    #[getter]
    fn id(&self) -> u32 {
        self.0.id()
    }

    /// Returns the entries of a map as a dict of bytes. No other program may change the map meanwhile.
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        for (key, value) in self.0.entries().map_err(|error| error::bpf(py, &error))? {
            found.set_item(PyBytes::new(py, &key), PyBytes::new(py, &value))?;
        }
        Ok(found)
    }
}

/// Puts an object through the kernel's verifier, as `settings` make it; with `register` its congestion control is
/// registered, and stays. Returns the number of programs and the steps of the verifier. BpfError: it is refused, or not
/// registered.
#[pyfunction]
#[pyo3(signature = (compiled, settings=None, register=false))]
fn check_object(
    py: Python<'_>,
    compiled: &[u8],
    settings: Option<&PySettings>,
    register: bool,
) -> PyResult<(usize, u64)> {
    let checked = py.detach(|| bpf::check(compiled, "algorithm", settings.map(|settings| &settings.0), register));
    checked.map(|checked| (checked.programs, checked.steps)).map_err(|error| error::bpf(py, &error))
}

/// The congestion controls in the kernel whose names begin with `mark`, as dicts: name, map_id, in_use, label, hashes
/// (numbers of the hash maps beside it, by name) and parameters (by name a value and its declaration). BpfError: the
/// kernel does not let us look.
#[pyfunction]
fn registered_controls<'py>(py: Python<'py>, mark: &str) -> PyResult<Bound<'py, PyList>> {
    let found = py.detach(|| bpf::registered(mark)).map_err(|error| error::bpf(py, &error))?;
    let list = PyList::empty(py);
    for one in found {
        let entry = PyDict::new(py);
        entry.set_item("name", one.name)?;
        entry.set_item("map_id", one.map_id)?;
        entry.set_item("in_use", one.in_use)?;
        entry.set_item("label", one.label)?;
        entry.set_item("hashes", one.hashes)?;
        let parameters = PyDict::new(py);
        for (name, known) in one.parameters {
            parameters.set_item(name, (known.value, known.declared))?;
        }
        entry.set_item("parameters", parameters)?;
        list.append(entry)?;
    }
    Ok(list)
}

/// Unregisters the congestion control of the struct_ops map `map_id`. One that has gone meanwhile is no error.
#[pyfunction]
fn unregister_control(py: Python<'_>, map_id: u32) -> PyResult<()> {
    bpf::unregister(map_id).map_err(|error| error::bpf(py, &error))
}

/// Returns true if the kernel has a struct of this name, by its own types (BTF). BpfError: it describes none.
#[pyfunction]
fn kernel_has_struct(py: Python<'_>, name: &str) -> PyResult<bool> {
    py.detach(|| bpf::kernel_has_struct(name)).map_err(|error| error::bpf(py, &error))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySettings>()?;
    module.add_class::<PyObject>()?;
    module.add_class::<PyMap>()?;
    module.add_function(wrap_pyfunction!(check_object, module)?)?;
    module.add_function(wrap_pyfunction!(registered_controls, module)?)?;
    module.add_function(wrap_pyfunction!(unregister_control, module)?)?;
    module.add_function(wrap_pyfunction!(kernel_has_struct, module)?)
}
