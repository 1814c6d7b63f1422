internal import TidemarkEngine
public import TidemarkSyncProtocol

/// A peer that is a sync server, called over HTTP.
///
/// ```swift
/// let peer = try HTTPPeer("https://sync.example.org/notes") { wasRefused in
///   "Bearer \(try await session.token(isRenewed: wasRefused))"
/// }
/// ```
/// Messages are sent as frames (`WireProtocol`), answers are read up to a bound, and nothing is
/// cached. Redirects are followed only within the same server, so that the authorization is never
/// sent to another. A response that is not a sync server's, such as the login page of a hotel,
/// counts as `unavailable`: no batch is given up for it.
///
/// Each replicator needs a peer of its own: two that share one would discard each other's partly
/// downloaded values.
public final class HTTPPeer: Peer {
  /// Gives the value of the header `Authorization`, such as `Bearer` and a token; nil for none.
  ///
  /// It is called before every request, so it should cache the value. `true` means that the last
  /// value was refused, by the server or by a proxy; that happens once in a call. What it throws
  /// counts as `unavailable`, so that it is called again after a pause, unless it is a `PeerError`:
  /// one of kind `unauthorized` says that the user has to sign in.
  public typealias Authorization = @Sendable (_ wasRefused: Bool) async throws -> String?

  /// The settings of an ``HTTPPeer`` besides its address: timeout, largest message and compression.
  public struct Options: Sendable, Hashable {
    /// How long a call may take; the default is 60 seconds. The wait of a long poll is added to it.
    public var timeout: Duration
    /// The most bytes of a received message. It must have room for the largest value that other
    /// replicas may push. The default is ``WireFrame/largestLimit``.
    public var largestMessage: Int
    /// How the peer compresses the frames that it sends. The default is zstd.
    public var codec: WireCodec

    /// Creates the settings of an ``HTTPPeer``; every parameter has a default.
    /// - Parameters:
    ///   - timeout: how long a call may take, without the wait of a long poll.
    ///   - largestMessage: the most bytes of a received message.
    ///   - codec: how sent frames are compressed.
    public init(
      timeout: Duration = .seconds(60), largestMessage: Int = WireFrame.largestLimit,
      codec: WireCodec = .zstd
    ) {
      self.timeout = timeout
      self.largestMessage = min(max(largestMessage, 1 << 16), WireFrame.largestLimit)
      self.codec = codec
    }
  }

  let address: HTTPAddress
  let transport: any HTTPTransport
  let options: Options
  private let authorization: Authorization?
  private let limits = Lock(SyncLimits())
  private let prepared = Lock<(batch: BatchID, body: [UInt8])?>(nil)
  let transfer = Lock(BlobTransfer())

  /// Creates a peer for a database of a sync server. It makes no call yet.
  /// - Parameters:
  ///   - url: the address of the database: `https://HOST/NAME`. With `http` everybody on the way
  ///     can read everything, including the authorization.
  ///   - transport: sends the requests; the peer closes it.
  ///   - options: the timeout, the largest message and the compression.
  ///   - authorization: gives the value of the header `Authorization`; nil for none.
  /// - Throws: `PeerError` of kind `failed` when the address is not such a URL.
  public init(
    _ url: String, transport: any HTTPTransport = PlatformTransport.make(),
    options: Options = Options(), authorization: Authorization? = nil
  ) throws(PeerError) {
    guard var address = HTTPAddress(url), !address.path.contains("?") else {
      throw PeerError(.failed, "a sync server has an address such as https://HOST/NAME")
    }
    while address.path.hasSuffix("/") { address.path.removeLast() }
    guard !address.path.isEmpty else {
      throw PeerError(.failed, "the address \(address) lacks the name of a database")
    }
    self.address = address
    self.transport = transport
    self.options = options
    self.authorization = authorization
  }

  /// The capabilities of every sync server, with the limits from the last hello.
  public var capabilities: PeerCapabilities {
    PeerCapabilities(limits: limits.withLock { $0 }, hasMarkBehindBatch: true)
  }

  /// Opens a session at the server, and learns the feed's state and the server's limits.
  public func hello(_ request: HelloRequest) async throws -> HelloAnswer {
    guard case .helloAnswer(let answer) = try await call("hello", .helloRequest(request)) else {
      throw Self.wrongAnswer
    }
    limits.withLock { $0 = answer.limits }
    return answer
  }

  /// Uploads the large values of a batch, then pushes the batch.
  public func push(_ request: PushRequest) async throws -> PushAnswer {
    let named = withoutBlobs(request)
    let ready = prepared.withLock { prepared in
      defer { prepared = nil }
      return prepared?.batch == request.batchID ? prepared?.body : nil
    }
    let body = try ready ?? coder.encode(.pushRequest(named))
    try await uploadBlobs(of: request, named: named)
    guard case .pushAnswer(let answer) = try await call("push", body) else {
      throw Self.wrongAnswer
    }
    return answer
  }

  /// Encodes and compresses the likely next batch while another one is in flight.
  public func prepare(_ request: PushRequest) {
    // If encoding fails here, `push` fails too and reports it.
    guard let body = try? coder.encode(.pushRequest(withoutBlobs(request))) else { return }
    prepared.withLock { $0 = (request.batchID, body) }
  }

  /// Reads a page of at most 256 KiB of the feed after a position. If the feed has nothing there,
  /// the server waits as long as the request says.
  public func pull(_ request: PullRequest) async throws -> PullAnswer {
    var page = request
    page.limits.bytes = min(page.limits.bytes, SyncLimits().bytes)
    page.takesBlobs = true
    let answer = try await call(
      "pull", .pullRequest(page), wait: .milliseconds(Int64(request.waitMilliseconds)))
    guard case .pullAnswer(var answer) = answer else { throw Self.wrongAnswer }
    try await fetchBlobs(of: &answer.entries, for: request.replica)
    return answer
  }

  /// Reads the current contents of keys from the server.
  public func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
    var question = request
    question.takesBlobs = true
    guard case .valuesAnswer(var answer) = try await call("values", .valuesRequest(question)) else {
      throw Self.wrongAnswer
    }
    try await fetchBlobs(of: &answer.entries, for: request.replica)
    return answer
  }

  /// Reads digests from the server, to find keys that differ.
  public func digest(_ request: DigestRequest) async throws -> DigestAnswer {
    guard case .digestAnswer(let answer) = try await call("digest", .digestRequest(request)) else {
      throw Self.wrongAnswer
    }
    return answer
  }

  /// Closes the transport; running calls fail.
  public func close() async { await transport.close() }

  static var wrongAnswer: PeerError {
    PeerError(.malformed, "the server's answer does not fit the request")
  }

  // MARK: Requests

  /// Sends a message and reads the answer.
  func call(
    _ route: String, _ message: WireMessage, wait: Duration = .zero
  ) async throws -> WireMessage {
    try await call(route, try coder.encode(message), wait: wait)
  }

  private var coder: WireCoder {
    WireCoder(limit: options.largestMessage, codec: options.codec)
  }

  private func call(
    _ route: String, _ body: [UInt8], wait: Duration = .zero
  ) async throws -> WireMessage {
    let headers = ["Content-Type": WireFrame.contentType, "Accept": WireFrame.contentType]
    return try await withDeadline(options.timeout + wait) { [self] in
      let answer = try await authorized { value in
        var headers = headers
        headers["Authorization"] = value
        return try await send("POST", route, headers, body)
      }
      return try ServerAnswer.message(in: answer, coder)
    }
  }

  private func send(
    _ method: String, _ route: String, _ headers: [String: String], _ body: [UInt8]
  ) async throws -> HTTPTransportAnswer {
    var target = address
    target.path += "/v1/\(route)"
    for _ in 0..<ServerAnswer.mostRequests {
      let answer = try await transport.answer(
        to: HTTPTransportRequest(
          method: method, url: target.description,
          headers: headers.merging(ServerAnswer.commonHeaders) { $1 }, body: body),
        limit: options.largestMessage + WireFrame.headerBytes)
      guard let next = ServerAnswer.redirect(answer, from: target) else { return answer }
      target = next
    }
    throw PeerError(.unavailable, "the server redirects again and again")
  }

  /// Sends a request with the authorization, and once more with a renewed one after a 401.
  private func authorized(
    _ request: (String?) async throws -> HTTPTransportAnswer
  ) async throws -> HTTPTransportAnswer {
    let first = try await authorizationValue(wasRefused: false)
    let answer = try await request(first)
    guard answer.status == 401, authorization != nil else { return answer }
    let second = try await authorizationValue(wasRefused: true)
    // The same value would be refused again.
    guard second != first, second != nil else { return answer }
    return try await request(second)
  }

  func authorizationValue(wasRefused: Bool) async throws -> String? {
    guard let authorization else { return nil }
    let value: String?
    do { value = try await authorization(wasRefused) } catch let error as PeerError {
      throw error
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      // The closure may have failed to reach the server that issues tokens, which may pass.
      throw PeerError(.unavailable, "the authorization could not be obtained: \(error)")
    }
    guard let value else { return nil }
    guard HTTPHeaders.isValue(value) else {
      throw PeerError(.unauthorized, "the authorization has characters that no header may have")
    }
    return value
  }
}
