function sortBy(head, rising) {
  const table = head.closest("table");
  const place = [...head.parentNode.children].indexOf(head);
  for (const other of head.parentNode.children) delete other.dataset.rising;
  head.dataset.rising = rising ? "yes" : "no";
  const value = (row) => row.children[place].dataset.value ?? row.children[place].textContent;
  const compare = (a, b) => {
    const difference = value(a) - value(b);
    return Number.isNaN(difference) ? value(a).localeCompare(value(b), undefined, { numeric: true }) : difference;
  };
  // What has no value yet stands last in either order.
  const order = (a, b) => (value(a) === "") - (value(b) === "") || (rising ? compare(a, b) : compare(b, a));
  const rows = [...table.tBodies[0].rows].sort(order);
  table.tBodies[0].append(...rows);
}
document.addEventListener("click", (event) => {
  const head = event.target.closest("table.sortable th");
  if (head) sortBy(head, head.dataset.rising !== "yes");
});
