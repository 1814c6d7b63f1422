internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The bytes of large values that calls hold at a time: a request of a few bytes may ask for 64
/// MiB.
final class LargeValues: Sendable {
  /// The budget of all handlers of the program.
  static let shared = LargeValues(most: 256 << 20)

  private let most: Int
  private let held = Lock(0)

  /// - Parameter most: in bytes; a single call may have more while there is no other.
  init(most: Int) { self.most = most }

  /// Runs a call that holds so many bytes.
  /// - Throws: ``PeerError`` of kind `busy` where others hold too much.
  func withRoom<R>(for bytes: Int, _ body: () throws -> R) throws -> R {
    guard bytes > 0 else { return try body() }
    let isThere = held.withLock { held in
      guard held == 0 || held + bytes <= most else { return false }
      held += bytes
      return true
    }
    guard isThere else {
      throw PeerError(.busy, "too many large values are being read", retryAfter: .seconds(1))
    }
    defer { held.withLock { $0 -= bytes } }
    return try body()
  }
}
