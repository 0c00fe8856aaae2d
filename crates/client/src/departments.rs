//! The endpoints of departments and node pools, one method each.

use api_types as wire;
use reqwest::Method;

use crate::{Client, Error};

const DEPARTMENTS: &str = "/api/v1/org-unit/departments";
const POOLS: &str = "/api/v1/node-pools";

impl Client {
    /// All departments.
    ///
    /// # Errors
    /// As every request.
    pub async fn departments(&self) -> Result<Vec<wire::DepartmentForList>, Error> {
        let limit = wire::PAGE_ITEMS_MAX;
        let (mut all, mut offset) = (Vec::new(), 0);
        loop {
            let path = format!("{DEPARTMENTS}?limit={limit}&offset={offset}");
            let page: wire::DepartmentsPage = self.get(&path).await?;
            all.extend(page.departments);
            match page.next {
                Some(next) if next > offset => offset = next,
                _ => return Ok(all),
            }
        }
    }

    /// Creates a department.
    ///
    /// # Errors
    /// As every request; 409 if the name is in use.
    pub async fn create_department(
        &self,
        request: &wire::DepartmentCreationRequest,
    ) -> Result<wire::DepartmentForList, Error> {
        self.send(Method::POST, DEPARTMENTS, request).await
    }

    /// Changes a department.
    ///
    /// # Errors
    /// As every request.
    pub async fn update_department(
        &self,
        id: &str,
        request: &wire::DepartmentUpdateRequest,
    ) -> Result<wire::DepartmentForList, Error> {
        self.send(Method::PUT, &format!("{DEPARTMENTS}/{id}"), request).await
    }

    /// Updates the given values of its shares in node pools, and returns it; other values are
    /// unchanged.
    ///
    /// # Errors
    /// As every request.
    pub async fn change_department_share(
        &self,
        id: &str,
        (given, force): (&[wire::ShareRequest], bool),
    ) -> Result<wire::DepartmentForList, Error> {
        let department = format!("{DEPARTMENTS}/{id}");
        let path = forced(&format!("{department}/resources"), force);
        let _: Vec<wire::Resources> = self.send(Method::PATCH, &path, &given).await?;
        self.get(&department).await
    }

    /// Deletes a department without projects.
    ///
    /// # Errors
    /// As every request.
    pub async fn delete_department(&self, id: &str) -> Result<(), Error> {
        self.act(Method::DELETE, &format!("{DEPARTMENTS}/{id}")).await
    }

    /// Updates the settings of a node: labels, taints, cordon.
    ///
    /// # Errors
    /// As every request.
    pub async fn change_node(
        &self,
        node: &str,
        patch: &wire::NodePatch,
        force: bool,
    ) -> Result<wire::Node, Error> {
        let path = forced(&format!("/elastane/v1/nodes/{node}"), force);
        self.send(Method::PATCH, &path, patch).await
    }

    /// All node pools.
    ///
    /// # Errors
    /// As every request.
    pub async fn node_pools(&self) -> Result<Vec<wire::Nodepool>, Error> {
        Ok(self.get::<wire::Nodepools>(POOLS).await?.nodepools)
    }

    /// Creates a node pool.
    ///
    /// # Errors
    /// As every request; 409 if the name is in use.
    pub async fn create_node_pool(
        &self,
        request: &wire::NodepoolCreateFields,
        force: bool,
    ) -> Result<wire::Nodepool, Error> {
        self.send(Method::POST, &forced(POOLS, force), request).await
    }

    /// Updates a node pool; values that are not given are unchanged.
    ///
    /// # Errors
    /// As every request.
    pub async fn update_node_pool(
        &self,
        id: &str,
        request: &wire::NodepoolUpdateFields,
    ) -> Result<wire::Nodepool, Error> {
        self.send(Method::PATCH, &format!("{POOLS}/{id}"), request).await
    }

    /// Deletes a node pool.
    ///
    /// # Errors
    /// As every request.
    pub async fn delete_node_pool(&self, id: &str, force: bool) -> Result<(), Error> {
        self.act(Method::DELETE, &forced(&format!("{POOLS}/{id}"), force)).await
    }

    /// The effects of a change on quotas.
    ///
    /// # Errors
    /// As every request.
    pub async fn quota_effects(
        &self,
        change: &wire::QuotaChange,
    ) -> Result<wire::QuotaEffects, Error> {
        self.send(Method::POST, "/elastane/v1/quota-effects", change).await
    }
}

/// The path of a change; `force` allows a project to have a smaller quota than its allocation.
pub(crate) fn forced(path: &str, force: bool) -> String {
    if force { format!("{path}?force=true") } else { path.to_owned() }
}
