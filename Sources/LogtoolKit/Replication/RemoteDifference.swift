internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

/// Compares a store with a peer and tells what differs.
struct RemoteDifference {
  let console: Console
  let keys: KeyStyle

  /// - Throws: a silent `findings` when something differs.
  func tell(_ path: String, _ target: RemoteTarget, _ options: RemoteOptions) throws {
    let result = try StoreAccess(path, console).read { store in
      let peer = try options.open(target, .write, console)
      defer { try? Waiting.run(console) { await peer.close() } }
      return try Waiting.run(console) { try await store.difference(from: peer) }
    }
    let printer = EntryPrinter(console: console, keys: keys)
    var list = try ListPrinter(console, "differences", empty: "")
    let parts: [(keys: [Key], name: String, sign: String)] = [
      (result.onlyHere, "only_here", console.paint("-", .red)),
      (result.onlyThere, "only_there", console.paint("+", .green)),
      (result.different, "different", console.paint("~", .yellow)),
    ]
    for part in parts {
      for key in part.keys {
        try list.add {
          .object([.bytes("key", key.bytes), .init("difference", .string(part.name))])
        } text: { () throws(ToolError) in
          try printer.appendLine(key: key.bytes, before: [part.sign], after: [])
        }
      }
    }
    let counts = parts.map { JSONValue.Member($0.name, .integer($0.keys.count)) }
    try list.end(
      [.init("comparisons", .integer(result.comparisons))] + counts, summarizes: true)
    console.say(
      "\(result.onlyHere.count) only here, \(result.onlyThere.count) only there, "
        + "\(result.different.count) different; "
        + HumanText.count(result.comparisons, "comparison", "comparisons"))
    if !result.isEqual { throw ToolError.silent(.findings) }
  }
}
