public import Tidemark

/// A loader of a manifest: a collection that is wanted whole, also offline, and never half old and
/// half new.
public struct Timetable: Sendable {
  /// The server that has it.
  public protocol Server: Sendable {
    func version() async throws -> [UInt8]
    func index() async throws -> [(line: String, hash: [UInt8])]
    func stops(of line: String) async throws -> [UInt8]
  }

  private struct Source: MirrorSource {
    let server: any Server

    func collectionHash() async throws -> [UInt8] { try await server.version() }

    func list(_ add: @Sendable (MirrorItem) throws -> Void) async throws {
      for row in try await server.index() { try add(MirrorItem(Key(row.line), hash: row.hash)) }
    }

    func fetch(_ item: MirrorItem) async throws -> MirrorValue<[UInt8]> {
      MirrorValue(try await server.stops(of: item.key.text))
    }
  }

  private let lines: Cache<[UInt8]>

  public init(_ store: Store) throws {
    lines = try store.cache(prefix: "lines/", policy: .manifest)
  }

  /// Brings what has changed, in one step.
  /// - Returns: how many lines were fetched and how many went.
  public func update(from server: any Server) async throws -> (fetched: Int, deleted: Int) {
    let outcome = try await lines.sync(with: Source(server: server))
    return (outcome.added + outcome.refetched, outcome.deleted)
  }

  public func stops(of line: String) throws -> String? {
    try lines.value(forKey: line).map { String(decoding: $0, as: UTF8.self) }
  }
}
