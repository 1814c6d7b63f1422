internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer

/// Tells with whom a store replicates.
struct PeersCommand: ToolCommand {
  enum Action: String, ExpressibleByArgument, CaseIterable { case list, forget, revoke }

  static let configuration = CommandConfiguration(
    commandName: "peers",
    abstract: "Tell with whom a store replicates and how far; forget a peer, revoke a replica.",
    discussion: """
      Examples:
        logtool peers S
        logtool peers S forget https://old.example.org/notes
        logtool peers SERVED revoke 0f3c9a5e6b7d48219c0a1b2c3d4e5f60

      Of a peer it tells what was not sent yet and not taken yet, when it answered last, until \
      when it keeps deletes for this store, what failed last, and what compactions here keep for \
      it. forget drops all that; the data stays. Of a store that others replicate with it lists \
      their replicas; revoke ends the lease of one that will not come back, so that deletes are \
      not kept for it any more.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Argument(help: "What to do: list, forget or revoke.")
  var action = Action.list

  @Argument(help: "The peer's name, or the replica.")
  var name: String?

  func validate() throws {
    if action != .list, name == nil { throw ValidationError("say which") }
    if action == .list, name != nil { throw ValidationError("list takes no name") }
  }

  func run(_ console: Console) throws {
    let access = StoreAccess(store, console)
    guard action != .list, let name else {
      return try access.read { try printList($0, console) }
    }
    if action == .forget {
      try access.write { store in
        guard try store.blocking.peers().contains(where: { $0.name == name }) else {
          throw ToolError(.failed, "the store knows no peer named \(name); see logtool peers")
        }
        try store.blocking.forget(peer: name)
      }
    } else {
      guard let replica = ReplicaID(name) else {
        throw ToolError(.usage, "a replica has 32 hexadecimal digits")
      }
      try access.write { store in
        guard try store.blocking.replicas().contains(where: { $0.id == replica }) else {
          throw ToolError(.failed, "no replica \(name) has been here; see logtool peers")
        }
        try SyncHandler(serving: store).forget(replica)
      }
    }
    if console.settings.format != .text {
      try console.output.line(
        .object([.init(action == .forget ? "forgotten" : "revoked", .string(name))]))
    } else {
      console.say(action == .forget ? "forgot \(name)" : "revoked \(name)")
    }
  }

  private func printList(_ store: Store, _ console: Console) throws {
    let now = console.clock.now()
    var list = try ListPrinter(console, "peers")
    for peer in try store.blocking.peers() {
      try list.add {
        Self.json(peer)
      } text: { () throws(ToolError) in
        for line in Self.lines(peer, now) { try console.output.line(line) }
      }
    }
    for replica in try store.blocking.replicas() {
      try list.add {
        Self.json(replica)
      } text: { () throws(ToolError) in
        try console.output.line(Self.line(replica, now))
      }
    }
    try list.end()
  }

  private static func json(_ peer: PeerInfo) -> JSONValue {
    .object([
      .init("name", .string(peer.name)), .init("target", .string(peer.target)),
      .init("cursor", .unsigned(peer.cursor.offset)),
      .init("to_take", .unsigned(peer.entriesToTake)),
      .init("to_send", .integer(peer.pending.entries)),
      .init("bytes_to_send", .integer(peer.pending.bytes)),
      .init("oldest_to_send", .optional(peer.pending.oldest?.text)),
      .init("parked", .integer(peer.pending.parked)),
      .init("to_decide", .integer(peer.pending.needsDecision)),
      .init("last_answer", .optional(peer.lastSuccess?.text)),
      .init("lease_ends", .optional(peer.leaseEnds?.text)),
      .init("last_error", .optional(peer.lastError)),
      .init("last_error_time", .optional(peer.lastErrorTime?.text)),
      .init("held_versions", .integer(peer.held.versions)),
      .init("held_deletes", .integer(peer.held.deletes)),
      .init("held_bytes", .integer(peer.held.bytes)),
    ])
  }

  private static func lines(_ peer: PeerInfo, _ now: Timestamp) -> [String] {
    let name = HumanText.escaped(Array(peer.name.utf8), keepingBackslashes: true)
    var lines = [name, "  to send: " + PendingCommand.text(peer.pending)]
    lines.append(
      "  to take: \(HumanText.count(peer.entriesToTake, "entry", "entries")) "
        + "as of the last answer, the cursor is at \(peer.cursor.offset)")
    lines.append("  last answer: " + (peer.lastSuccess?.text ?? "never"))
    if let end = peer.leaseEnds {
      lines.append("  lease: " + (end < now ? "has run out" : "until \(end.text)"))
    }
    let held = peer.held
    if held.keepsAll {
      lines.append("  kept here: all superseded entries, until it is replicated with again")
    } else if held.versions + held.deletes > 0 {
      lines.append(
        "  kept here: \(HumanText.count(held.versions, "version", "versions")) and "
          + "\(HumanText.count(held.deletes, "delete", "deletes")) that it needs, "
          + HumanText.size(held.bytes))
    }
    if let error = peer.lastError, let time = peer.lastErrorTime {
      let shown = HumanText.escaped(Array(error.utf8), keepingBackslashes: true)
      lines.append("  last error: \(shown), at \(time.text)")
    }
    return lines
  }

  private static func json(_ replica: ReplicaInfo) -> JSONValue {
    .object([
      .init("replica", .string(replica.id.description)),
      .init("cursor", .unsigned(replica.cursor.offset)),
      .init("to_take", .unsigned(replica.entriesToTake)),
      .init("lease_ends", .optional(replica.leaseEnds?.text)),
    ])
  }

  private static func line(_ replica: ReplicaInfo, _ now: Timestamp) -> String {
    let lease = replica.leaseEnds.map { $0 < now ? "lease has run out" : "lease until \($0.text)" }
    return "replica \(replica.id.description)  "
      + "\(HumanText.count(replica.entriesToTake, "entry", "entries")) to take  "
      + (lease ?? "no lease")
  }
}
