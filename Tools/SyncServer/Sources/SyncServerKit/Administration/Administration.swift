internal import TidemarkSyncServer

#if PostgreSQL
  public import Tidemark
  internal import TidemarkPostgres
#endif

#if canImport(Darwin)
  internal import Foundation
#else
  internal import FoundationEssentials
#endif

/// A command of an operator: its name, its arguments, and what it does.
public struct AdminCommand: Sendable {
  public let name: String
  public let arguments: [String]
  /// Whether it changes nothing, so that HTTP takes it as `GET`.
  public let isReading: Bool
  public let help: String

  private init(_ name: String, _ arguments: [String], reads: Bool = false, _ help: String) {
    (self.name, self.arguments, isReading, self.help) = (name, arguments, reads, help)
  }

  public static let all = [
    AdminCommand("list", [], reads: true, "the databases"),
    AdminCommand("stat", ["NAME"], reads: true, "one database"),
    AdminCommand("replicas", ["NAME"], reads: true, "its replicas, those first that lack most"),
    AdminCommand("revocations", [], reads: true, "who is refused"),
    AdminCommand("create", ["NAME"], "make a database"),
    AdminCommand("delete", ["NAME"], "delete it; a new one of the name is another to its devices"),
    AdminCommand("quota", ["NAME", "BYTES"], "reject puts beyond so many bytes; 0 for none"),
    AdminCommand("read-only", ["NAME", "on|off"], "let devices keep their changes for later"),
    AdminCommand("compact", ["NAME"], "delete what is superseded and older than the history kept"),
    AdminCommand("new-epoch", ["NAME"], "make devices compare, after rows were changed by hand"),
    AdminCommand("forget", ["NAME", "REPLICA"], "end the lease of a device that does not return"),
    AdminCommand("revoke", ["replica|subject|token", "VALUE"], "refuse a device, or callers"),
    AdminCommand("restore", ["replica|subject|token", "VALUE"], "take a revocation back"),
  ]
}

extension ReplicaID {
  /// - Returns: nil unless there are 32 digits.
  init?(hexadecimal text: String) {
    let digits = text.compactMap(\.hexDigitValue)
    guard digits.count == text.utf8.count, digits.count == 2 * Self.byteCount else { return nil }
    self.init(
      stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
  }
}

#if PostgreSQL
  /// What operators do with databases in PostgreSQL. A command comes as words: from the command
  /// line, or from the path of a request.
  public struct Administration: Sendable {
    private let feeds: PostgresFeeds
    private let options: SyncHandler.Options

    init(_ feeds: PostgresFeeds) {
      self.feeds = feeds
      var options = SyncHandler.Options()
      // Leases are as long as the servers' settings say: none is cut short here.
      options.lease = nil
      self.options = options
    }

    /// Connects without a server.
    public init(
      _ options: PostgresOptions, keeping: CompactionSettings
    ) throws(SettingsError) {
      self.init(try PostgresHome(options, history: keeping.history).feeds)
    }

    public func close() { feeds.close() }

    /// The rows that answer a command.
    public struct Answer: Sendable {
      /// As a JSON array.
      public let json: String
      /// As a table for people.
      public let table: String

      init(_ rows: [some Codable & Sendable]) throws(TidemarkError) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do { json = String(decoding: try encoder.encode(rows), as: UTF8.self) } catch {
          throw TidemarkError(.inputOutput, "the answer cannot be written as JSON", cause: error)
        }
        let cells = rows.map { row in
          Mirror(reflecting: row).children.map { name, value -> (String, String) in
            let text = Mirror(reflecting: value).displayStyle == .optional ? "-" : "\(value)"
            let inner = Mirror(reflecting: value).children.first.map { "\($0.value)" }
            return (name ?? "", inner ?? text)
          }
        }
        let lines = (cells.first.map { [$0.map(\.0)] } ?? []) + cells.map { $0.map(\.1) }
        table = Self.aligned(lines)
      }

      private static func aligned(_ lines: [[String]]) -> String {
        let widths = (lines.first ?? []).indices.map { column in
          lines.map { $0[column].count }.max() ?? 0
        }
        return lines.map { line in
          let cells = zip(line.dropLast(), widths).map { text, width in
            text + String(repeating: " ", count: width + 2 - text.count)
          }
          return cells.joined() + (line.last ?? "") + "\n"
        }.joined()
      }
    }

    /// Runs a command; blocks.
    /// - Throws: `invalidArgument` for words that are none, what the databases throw.
    public func answer(_ words: [String]) throws(TidemarkError) -> Answer {
      guard let command = AdminCommand.all.first(where: { $0.name == words.first }),
        words.count == command.arguments.count + 1
      else {
        throw TidemarkError(.invalidArgument, "there is no such command, or it has other arguments")
      }
      let arguments = Array(words.dropFirst())
      switch command.name {
      case "list": return try Answer(all())
      case "revocations": return try Answer(feeds.revocations())
      case "revoke", "restore":
        guard let kind = Revocation.Kind(rawValue: arguments[0]) else {
          throw TidemarkError(.invalidArgument, "revoke a replica, a subject or a token")
        }
        try feeds.setRevoked(command.name == "revoke", Revocation(kind, arguments[1]))
        return try Answer(feeds.revocations())
      default:
        guard DatabaseName(arguments[0]) != nil else {
          throw TidemarkError(.invalidArgument, "\(arguments[0]) is no name of a database")
        }
        return try answer(command.name, arguments[0], arguments.last ?? "")
      }
    }

    private func all() throws(TidemarkError) -> [DatabaseStatus] {
      var all: [DatabaseStatus] = []
      while case let more = try feeds.statuses(after: all.last?.database ?? ""), !more.isEmpty {
        all += more
      }
      return all
    }

    private func answer(
      _ command: String, _ name: String, _ argument: String
    ) throws(TidemarkError) -> Answer {
      switch command {
      case "replicas": return try Answer(feeds.replicas(of: name))
      case "create": try feeds.handler(of: name).close()
      case "delete":
        let before = try feeds.status(of: name)
        try feeds.delete(name)
        return try Answer([before])
      case "quota":
        guard let bytes = Int(argument) else {
          throw TidemarkError(.invalidArgument, "\(argument) is no number of bytes")
        }
        try feeds.setQuota(bytes, of: name)
      case "read-only":
        guard ["on", "off"].contains(argument) else {
          throw TidemarkError(.invalidArgument, "say on or off")
        }
        try feeds.setReadOnly(argument == "on", of: name)
      case "compact":
        try feeds.handler(of: name, creating: false, options: options).compact()
      case "new-epoch": try feeds.beginNewEpoch(of: name)
      case "forget":
        guard let replica = ReplicaID(hexadecimal: argument) else {
          throw TidemarkError(.invalidArgument, "a replica has 32 hexadecimal digits")
        }
        try feeds.handler(of: name, creating: false, options: options).forget(replica)
      default: break
      }
      return try Answer([feeds.status(of: name)])
    }
  }

  extension PostgresOptions {
    /// Whether all is as a server needs it, in lines for people.
    /// - Returns: also whether something fails.
    public func examined() -> (lines: [String], fails: Bool) {
      let findings = PostgresFeeds.examine(settings(history: .zero))
      return (
        findings.map { "\($0.level.rawValue): \($0.text)" },
        findings.contains { $0.level == .failure }
      )
    }

    /// Copies a database of a server's data directory, which no server may have open.
    /// - Returns: how many entries it has.
    public func copy(
      _ name: String, from directory: String, as copy: String
    ) throws(SettingsError) -> Int {
      guard let name = DatabaseName(name), DatabaseName(copy) != nil else {
        throw SettingsError("a database has another kind of name")
      }
      do throws(TidemarkError) {
        let feeds = try PostgresFeeds(settings(history: .zero))
        defer { feeds.close() }
        return try feeds.copy(fromStoreAt: DataDirectory.store(of: name, in: directory), to: copy)
      } catch { throw SettingsError(error.message, .unavailable) }
    }

    /// Makes the tables, or brings those of an earlier release to this one's.
    public func applySchema() throws(SettingsError) {
      do throws(TidemarkError) { try PostgresFeeds.applySchema(settings(history: .zero)) } catch {
        throw SettingsError(error.message, .unavailable)
      }
    }

    /// The statements of that.
    public static var schema: String { PostgresFeeds.schema }
  }
#endif
