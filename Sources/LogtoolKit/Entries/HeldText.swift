internal import TidemarkEngine

/// History that compactions keep for peers, as text and as JSON.
enum HeldText {
  /// A line for each peer for which something is kept.
  static func lines(_ held: [HeldHistory]) -> [String] {
    held.filter { !$0.isEmpty }.map { row in
      let name = HumanText.escaped(Array(row.peer.utf8), keepingBackslashes: true)
      return "\(text(row)) stay for the peer \(name); peers forget \(name) lets them go"
    }
  }

  /// The amount.
  static func text(_ row: HeldHistory) -> String {
    guard !row.keepsAll else { return "all superseded entries" }
    return HumanText.count(row.versions, "version", "versions")
      + " that pending changes were made upon and "
      + HumanText.count(row.deletes, "delete", "deletes") + ", \(HumanText.size(row.bytes)),"
  }

  static func json(_ held: [HeldHistory]) -> JSONValue {
    .array(
      held.filter { !$0.isEmpty }.map { row in
        .object([
          .init("peer", .string(row.peer)), .init("versions", .integer(row.versions)),
          .init("deletes", .integer(row.deletes)), .init("bytes", .integer(row.bytes)),
          .init("keeps_all", .bool(row.keepsAll)),
        ])
      })
  }
}
