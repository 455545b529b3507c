//! Which tool is whose.

use std::collections::HashMap;
use std::sync::Arc;

use raincheck_core::tool::{Hints, ToolSpec};

use super::options::Options;
use crate::surface::{Layer, Shown, Surface};
use crate::surfaces::canonical::Canonical;

/// Two tools of one name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two tools are named `{0}`; rename one of them")]
pub struct Clash(pub String);

/// Who answers calls of a tool.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner<'a> {
    /// A surface.
    Surface(&'a dyn Surface),
    /// A layer.
    Layer(&'a dyn Layer),
}

/// Whose a tool is: the place of its surface, or of its layer.
#[derive(Clone, Copy, Debug)]
enum Place {
    Surface(usize),
    Layer(usize),
}

/// Surfaces and layers, and their tools.
#[derive(Debug)]
pub(super) struct Registry {
    surfaces: Vec<Arc<dyn Surface>>,
    layers: Vec<Arc<dyn Layer>>,
    shown: Vec<Shown>,
    owners: HashMap<String, Place>,
}

impl Registry {
    pub(super) fn new(options: &Options, specs: &[ToolSpec]) -> Result<Self, Clash> {
        let mut surfaces = options.surfaces.clone();
        if surfaces.is_empty() {
            surfaces.push(Arc::new(Canonical));
        }
        let layers = options.layers.clone();
        let of_surfaces = surfaces.iter().enumerate().flat_map(|(place, surface)| {
            surface.tools(specs).into_iter().map(move |shown| (Place::Surface(place), shown))
        });
        let of_layers = layers.iter().enumerate().flat_map(|(place, layer)| {
            layer.tools().into_iter().map(move |shown| (Place::Layer(place), shown))
        });
        let (mut owners, mut list) = (HashMap::new(), Vec::new());
        for (place, shown) in of_surfaces.chain(of_layers) {
            if owners.insert(shown.name.clone(), place).is_some() {
                return Err(Clash(shown.name));
            }
            list.push(shown);
        }
        for (place, surface) in surfaces.iter().enumerate() {
            for alias in surface.aliases() {
                if owners.insert(alias.to_owned(), Place::Surface(place)).is_some() {
                    return Err(Clash(alias.to_owned()));
                }
            }
        }
        Ok(Self { surfaces, layers, shown: list, owners })
    }

    /// Returns the tools in the order of the list.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Shown> {
        self.shown.iter()
    }

    /// Returns what a client may assume of a tool that stands in the list.
    pub(super) fn hints(&self, tool: &str) -> Option<Hints> {
        self.shown.iter().find(|shown| shown.name == tool).map(|shown| shown.hints)
    }

    pub(super) fn surfaces(&self) -> &[Arc<dyn Surface>] {
        &self.surfaces
    }

    /// Returns the surface in whose words a layer's refusals are told.
    pub(super) fn first(&self) -> &dyn Surface {
        self.surfaces.first().map_or(&Canonical, |surface| &**surface)
    }

    pub(super) fn layers(&self) -> &[Arc<dyn Layer>] {
        &self.layers
    }

    /// Finds who answers calls of a tool.
    pub(super) fn owner(&self, tool: &str) -> Option<Owner<'_>> {
        match *self.owners.get(tool)? {
            Place::Surface(place) => self.surfaces.get(place).map(|one| Owner::Surface(&**one)),
            Place::Layer(place) => self.layers.get(place).map(|one| Owner::Layer(&**one)),
        }
    }
}
