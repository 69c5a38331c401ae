// SPDX-License-Identifier: Apache-2.0
// A choice of versions in the sidebar, where the site is hosted: versions.json is next to this version's folder.
const top_of_version = new URL(document.documentElement.dataset.content_root, location.href);
const here = top_of_version.pathname.split("/").at(-2);

async function go(version) {
  const first = new URL(`../${version}/`, top_of_version);
  const same_page = new URL(location.href.slice(top_of_version.href.length), first);
  const found = await fetch(same_page, { method: "HEAD" });
  location = found.ok ? same_page : first;
}

async function offer() {
  const listed = await fetch(new URL("../versions.json", top_of_version));
  if (!listed.ok) return;
  const versions = await listed.json();
  const choice = document.createElement("select");
  choice.className = "versions";
  choice.setAttribute("aria-label", "Version of the documentation");
  for (const version of versions) choice.add(new Option(version, version, false, version === here));
  choice.onchange = () => go(choice.value);
  document.querySelector(".sidebar-brand").after(choice);
}

if (location.protocol.startsWith("http")) offer();
