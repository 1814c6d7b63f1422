internal import Tidemark
internal import TidemarkEngine

/// Collects a body while it is handed on: in memory as long as it is short, then in an attachment.
///
/// An error here is not the reader's concern: then the response is not kept.
final class ResponseKeeper: Sendable {
  private struct State {
    var bytes: [UInt8] = []
    var length = 0
    var writer: AttachmentWriter?
    var hasFailed = false
  }

  private let state = Lock(State())
  private let store: Store
  private let policy: HTTPCachePolicy

  init(_ store: Store, _ policy: HTTPCachePolicy) {
    self.store = store
    self.policy = policy
  }

  func take(_ bytes: [UInt8]) {
    state.withLock { state in
      state.length += bytes.count
      guard !state.hasFailed, state.length <= policy.longestBody else { return fail(&state) }
      do {
        if let writer = state.writer { return try writer.write(bytes) }
        state.bytes += bytes
        guard state.bytes.count > policy.inlineBytes else { return }
        let writer = try store.attachmentWriter()
        state.writer = writer
        try writer.write(state.bytes)
        state.bytes = []
      } catch { fail(&state) }
    }
  }

  private func fail(_ state: inout State) {
    state.hasFailed = true
    state.writer?.cancel()
    state.writer = nil
    state.bytes = []
  }

  /// The end of the body.
  /// - Parameter length: what the response has said it is.
  /// - Returns: the body, or where it is; nil where it cannot be kept.
  func finish(length: Int?) -> (bytes: [UInt8], attachment: StagedAttachment?)? {
    state.withLock { state in
      guard !state.hasFailed, length == nil || length == state.length else {
        fail(&state)
        return nil
      }
      guard let writer = state.writer else { return (state.bytes, nil) }
      do { return ([], try writer.finish()) } catch {
        fail(&state)
        return nil
      }
    }
  }

  /// Bytes so far; 0 where they are not kept.
  var length: Int { state.withLock { $0.hasFailed ? 0 : $0.length } }

  /// Whether the body is too long, or there was an error.
  var hasFailed: Bool { state.withLock { $0.hasFailed } }
}
