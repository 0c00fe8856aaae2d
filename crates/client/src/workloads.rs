//! Lists of workloads. Owns: pages, and that no more rows are requested than needed.

use api_types as wire;

use crate::routes::escape;
use crate::{Client, Error};

/// Filter, order and page of a list of workloads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Conditions of `filterBy`; all of them hold.
    pub conditions: Vec<String>,
    /// Field of `sortBy`; true for descending order.
    pub sort_by: Option<(&'static str, bool)>,
    /// Number of workloads to skip.
    pub offset: u64,
    /// Maximum number of workloads; `None` = no limit.
    pub limit: Option<u64>,
}

impl Selection {
    fn filter(&self) -> String {
        if self.conditions.is_empty() {
            return String::new();
        }
        format!("&filterBy={}", escape(&self.conditions.join(",")))
    }
}

impl Client {
    /// All current workloads, of one project or of all.
    ///
    /// # Errors
    /// As every request.
    pub async fn workloads(&self, project: Option<&str>) -> Result<Vec<wire::Workload>, Error> {
        let filter = project
            .map(|name| format!("&filterBy=projectName=={}", escape(name)))
            .unwrap_or_default();
        Ok(self.pages(&filter, 0, None).await?.0)
    }

    /// The current workloads that a query selects, and the number of those after them. No more are
    /// requested than its limit.
    ///
    /// # Errors
    /// As every request.
    pub async fn select(&self, query: &Selection) -> Result<(Vec<wire::Workload>, u64), Error> {
        let (filter, mut order) = (query.filter(), String::new());
        if let Some((field, descending)) = query.sort_by {
            let word = if descending { "desc" } else { "asc" };
            order = format!("&sortBy={field}&sortOrder={word}");
        }
        let asked = format!("{filter}{order}");
        let (page, more) = self.pages(&asked, query.offset, query.limit).await?;
        if !more {
            return Ok((page, 0));
        }
        let path = format!("/api/v1/workloads/count?{}", filter.trim_start_matches('&'));
        let count = self.get::<wire::CountResponse>(&path).await?.count;
        let shown = query.offset.saturating_add(page.len() as u64);
        Ok((page, count.saturating_sub(shown)))
    }

    /// The workloads up to the limit, in pages, and true if there are more.
    async fn pages(
        &self,
        query: &str,
        mut offset: u64,
        limit: Option<u64>,
    ) -> Result<(Vec<wire::Workload>, bool), Error> {
        let mut all = Vec::new();
        loop {
            let left = limit.map_or(u64::MAX, |limit| limit.saturating_sub(all.len() as u64));
            // A server returns at least one row, even for a limit of 0.
            let page = self.workloads_page(left.clamp(1, wire::PAGE_ITEMS_MAX), offset, query);
            let page = page.await?;
            if left == 0 {
                return Ok((all, !page.workloads.is_empty()));
            }
            all.extend(page.workloads);
            let is_full = limit.is_some_and(|limit| all.len() as u64 >= limit);
            match page.next {
                Some(next) if next > offset && !is_full => offset = next,
                next => return Ok((all, next.is_some())),
            }
        }
    }

    /// The current workload of this name in a project, or of any project by its id; `None` for a
    /// name that no workload can have.
    ///
    /// # Errors
    /// As every request.
    pub async fn workload_named(
        &self,
        project: &str,
        name: &str,
    ) -> Result<Option<wire::Workload>, Error> {
        // A comma would start another condition.
        if project.contains(',') || name.contains(',') {
            return Ok(None);
        }
        if is_id(name) {
            match self.workload(name).await {
                Err(Error::Api { code: 404, .. }) => {}
                found => return found.map(Some),
            }
        }
        let (project, name) = (escape(project), escape(name));
        let filter = format!("&filterBy=projectName=={project},name=={name}");
        Ok(self.workloads_page(1, 0, &filter).await?.workloads.pop())
    }

    /// The workloads that have not ended and are not suspended; `None` if they are more than `max`,
    /// so that the request costs no more on a crowded server.
    ///
    /// # Errors
    /// As every request.
    pub async fn unfinished_if_few(&self, max: u64) -> Result<Option<Vec<wire::Workload>>, Error> {
        let filter = "&filterBy=phase!=Completed,phase!=Failed,phase!=Stopped";
        let page = self.workloads_page(max, 0, filter).await?;
        Ok(page.next.is_none().then_some(page.workloads))
    }

    /// The current workloads of a project; `None` if they are more than `max`.
    ///
    /// # Errors
    /// As every request.
    pub async fn workloads_if_few(
        &self,
        project: &str,
        max: u64,
    ) -> Result<Option<Vec<wire::Workload>>, Error> {
        let filter = format!("&filterBy=projectName=={}", escape(project));
        let page = self.workloads_page(max, 0, &filter).await?;
        Ok(page.next.is_none().then_some(page.workloads))
    }

    async fn workloads_page(
        &self,
        limit: u64,
        offset: u64,
        filter: &str,
    ) -> Result<wire::WorkloadsPage, Error> {
        self.get(&format!("/api/v1/workloads?limit={limit}&offset={offset}{filter}")).await
    }
}

/// True for a text in the form of a workload's id: a UUID.
fn is_id(name: &str) -> bool {
    let lengths = name.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && name.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}
