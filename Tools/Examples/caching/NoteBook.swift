public import Tidemark
public import TidemarkSync

/// Notes that a program kept with flags of its own (isSynced, isDeleted, retryCount): here the log
/// knows what a server has not heard of.
///
/// A write is there at once, without a network. What was deleted is gone for the program, and stays
/// in the log until the server knows.
public struct NoteBook: Sendable {
  private let store: Store
  private let replicator: Replicator

  public init(_ store: Store, server: any Peer) throws {
    self.store = store
    replicator = try store.replicator(named: "server", peer: server)
  }

  public func save(_ text: String, id: Int) async throws {
    try await store.put("note/\(id)", text)
  }

  public func delete(_ id: Int) async throws { try await store.delete("note/\(id)") }

  public func texts() throws -> [String] {
    try store.all(prefix: "note/").map { String(decoding: $0.value, as: UTF8.self) }
  }

  /// How many writes the server has not heard of.
  public func unsynced() async throws -> Int { try await store.pending(for: "server").entries }

  /// Sends what is unsynced and takes what others wrote; what fails is sent again the next time.
  public func sync() async throws { _ = try await replicator.syncOnce() }
}
