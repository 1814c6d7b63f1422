import Foundation
import Tidemark
import TidemarkSync
import TidemarkSyncServer

/// The stores of `Tests/Fixtures/stores`, one directory for each version of the format: each was
/// written once, by the release that brought the version, and every later release must open it.
enum StoreFixture: String, CaseIterable, Sendable {
  case plain, killed, compacted, dense, encrypted, attachments, collections, cache, replicated
  case damaged

  /// The versions of which there are stores; the last one is that of this build.
  static let versions = ["4.0"]
  static let key = [UInt8](repeating: 7, count: 32)
  /// A word that stands in the first object of `collections` alone.
  static let word = "abalone"

  struct Note: Codable, Identifiable, Sendable {
    var id: String
    var text: String
    var isDone = false
  }

  static func notes(in store: Store) throws -> ObjectCollection<Note, String> {
    try store.collection(
      Note.self, named: "notes",
      CollectionSchema(indexes: [
        ObjectIndex("list", .ascending(\.isDone), .folded(\.text)),
        ObjectIndex(text: "words", \.text),
      ]))
  }

  static let content = (0..<50_000).map { UInt8(truncatingIfNeeded: $0 / 100) }

  var configuration: Store.Configuration {
    var configuration = Store.Configuration()
    if self == .encrypted { configuration.encryption = .key { _ in Self.key } }
    return configuration
  }

  /// Writes the store as this build does, for a new version of the format.
  func write(to path: String) async throws {
    let store = try await Store.open(at: path, configuration: configuration)
    switch self {
    case .plain, .encrypted: try await Self.fill(store, notes: 100)
    case .killed:
      try await Self.fill(store, notes: 100)
      // A killed process leaves the files as they are while the store is open, so these are copied.
      try FileManager.default.copyItem(atPath: path, toPath: path + ".copy")
      try await store.close()
      try FileManager.default.removeItem(atPath: path)
      return try FileManager.default.moveItem(atPath: path + ".copy", toPath: path)
    case .compacted, .damaged, .dense:
      try await Self.fill(store, notes: 1_500)
      _ = try await store.compact(dense: self == .dense)
      try await store.put("after", "the compaction")
    case .attachments: try await Self.attach(store)
    case .collections:
      let notes = try Self.notes(in: store)
      for number in 0..<60 {
        let word = number == 0 ? Self.word : "words of note"
        try await notes.put(
          Note(id: "\(number)", text: "\(word) \(number)", isDone: number % 3 == 0))
      }
    case .cache:
      let pages = try store.cache(prefix: "pages/", policy: CachePolicy(capacity: 50))
      for number in 0..<80 {
        try await pages.put("\(number)", Array("page \(number)".utf8), hash: Array("h".utf8))
      }
      try await Self.fill(store, notes: 10)
    case .replicated: try await Self.replicate(store, peer: path + ".peer")
    }
    try await store.close()
    if self == .damaged { try Self.damage(path) }
  }

  private static func fill(_ store: Store, notes: Int) async throws {
    for start in stride(from: 0, to: notes, by: 50) {
      try await store.write { batch in
        for number in start..<min(start + 50, notes) {
          try batch.put(
            "note/\(number)", "{\"title\":\"note \(number)\",\"done\":\(number % 2 == 0)}",
            labels: ["notes", number % 2 == 0 ? "done" : "open"])
        }
      }
    }
    for number in stride(from: 0, to: notes, by: 7) {
      let again = "{\"title\":\"note \(number) again\"}"
      try await store.put("note/\(number)", again, labels: ["notes"])
    }
    for number in stride(from: 3, to: notes, by: 10) { try await store.delete("note/\(number)") }
    try await store.touch("note/0", maxAge: .seconds(60))
    try await store.put("empty", "")
    try await store.put("long", content)
    try await store.put([0xff, 0x00] as [UInt8], "a key that is no text", durability: .durable)
  }

  private static func attach(_ store: Store) async throws {
    let content = try await attached(Self.content, to: store)
    for key in ["film/1", "film/2"] {
      try await store.put(key, "{}", options: PutOptions(attachment: content))
    }
    let gone = try await attached([1, 2, 3], to: store)
    try await store.put("film/3", "{}", options: PutOptions(attachment: gone))
    try await store.releaseAttachment(gone.reference)
  }

  private static func attached(
    _ bytes: [UInt8], to store: Store
  ) async throws -> StagedAttachment {
    let (chunks, continuation) = AsyncStream.makeStream(of: [UInt8].self)
    continuation.yield(bytes)
    continuation.finish()
    return try await store.attach(chunks: chunks)
  }

  private static func replicate(_ store: Store, peer path: String) async throws {
    let peer = try await StorePeer(at: path)
    let replicator = try store.replicator(named: "home", peer: peer)
    try await fill(store, notes: 20)
    _ = try await replicator.syncOnce()
    for number in 0..<3 { try await store.put("pending/\(number)", "not sent") }
    try FileManager.default.removeItem(atPath: path)
  }

  /// Flips a bit in the middle of the oldest segment, so that a block's checksum fails.
  private static func damage(_ path: String) throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: path + "/log").sorted()
    let file = URL(filePath: path + "/log/" + names[0])
    var bytes = try Data(contentsOf: file)
    bytes[bytes.count / 2] ^= 0x10
    try bytes.write(to: file)
  }
}
