import Foundation
import Tidemark
import TidemarkEngine
import TidemarkHTTP
import TidemarkHTTPCache
import TidemarkSyncProtocol

/// A transport whose requests wait until a test says what they get.
final class HeldTransport: HTTPTransport {
  private struct State {
    var requests: [HTTPTransportRequest] = []
    var answers: [Int: Result<HTTPTransportAnswer, PeerError>] = [:]
    var cancelled: Set<Int> = []
  }

  private let state = Lock(State())
  private let change = Signal()

  var requests: [HTTPTransportRequest] { state.withLock { $0.requests } }
  /// How many requests were called off.
  var cancelled: Int { state.withLock { $0.cancelled.count } }

  /// Answers a request, the first one being 0; it may come later.
  func answer(_ number: Int, _ body: String, status: Int = 200, _ headers: [String: String]) {
    let answer = HTTPTransportAnswer(status: status, headers: headers, body: Array(body.utf8))
    state.withLock { $0.answers[number] = .success(answer) }
    change.raise()
  }

  func fail(_ number: Int) {
    state.withLock { $0.answers[number] = .failure(PeerError(.unavailable, "it is gone")) }
    change.raise()
  }

  /// Waits until so many requests have come, and so many of them were called off.
  func wait(requests: Int, cancelled: Int = 0) async throws {
    _ = try await change.first {
      state.withLock {
        $0.requests.count >= requests && $0.cancelled.count >= cancelled ? true : nil
      }
    }
  }

  func stream(
    _ request: HTTPTransportRequest,
    head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
    body: @escaping @Sendable ([UInt8]) throws -> Void
  ) async throws {
    let number = state.withLock { state in
      state.requests.append(request)
      return state.requests.count - 1
    }
    change.raise()
    do {
      let answer = try await change.first { state.withLock { $0.answers[number] } }.get()
      // As transports do, it waits for slow readers on a thread of its own.
      try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread {
          continuation.resume(with: Result { try Self.deliver(answer, head, body) })
        }
      }
    } catch is CancellationError {
      _ = state.withLock { $0.cancelled.insert(number) }
      change.raise()
      throw CancellationError()
    }
  }

  private static func deliver(
    _ answer: HTTPTransportAnswer, _ head: (HTTPTransportAnswer) throws -> Void,
    _ body: ([UInt8]) throws -> Void
  ) throws {
    try head(HTTPTransportAnswer(status: answer.status, headers: answer.headers))
    for start in stride(from: 0, to: answer.body.count, by: 65_536) {
      try body(Array(answer.body[start...].prefix(65_536)))
    }
  }

  func close() async {}
}

/// A cache before a ``HeldTransport``.
struct HeldBench {
  let transport = HeldTransport()
  let store: Store
  let cache: HTTPCache
  static let url = "http://a.example/x"

  init() throws {
    store = try Store.openBlocking(at: .inMemory)
    cache = try HTTPCache(store: store, transport: transport)
  }

  /// Begins to ask.
  func ask(_ headers: [String: String] = [:], url: String = url) -> Task<String, any Error> {
    Task {
      let request = HTTPTransportRequest(url: url, headers: headers)
      return String(
        decoding: try await cache.answer(to: request, limit: 1 << 26).body, as: UTF8.self)
    }
  }

  /// Waits until so many requests wait for the same of others.
  func wait(shared: Int) async throws {
    while cache.counts.shared < shared { try await Task.sleep(for: .milliseconds(1)) }
  }

  func close() async throws {
    await cache.close()
    try await store.close()
  }
}
