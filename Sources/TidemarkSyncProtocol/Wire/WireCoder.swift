internal import TidemarkEngine
internal import TidemarkNDJSON

/// Codes and decodes messages, as frames or as JSON.
///
/// ```swift
/// let coder = WireCoder()
/// let frame = try coder.encode(.pullRequest(PullRequest(replica: me, after: cursor)))
/// let answer = try coder.decode(received)
/// ```
/// Bytes from the other side are not trusted: decoding returns a valid message or throws
/// ``PeerError`` of kind `malformed`, and takes no more memory than ``limit`` allows.
public struct WireCoder: Sendable, Hashable {
  /// The most bytes of an uncompressed message in a frame. A message in JSON may have four times as
  /// many.
  public var limit: Int
  /// How the coder compresses the frames that it writes, if that makes them shorter. Decoding
  /// accepts every codec.
  public var codec: WireCodec

  /// Creates a coder for messages.
  /// - Parameters:
  ///   - limit: the most bytes of an uncompressed message, at most ``WireFrame/largestLimit``.
  ///   - codec: how frames are compressed; decoding accepts every codec.
  public init(limit: Int = WireFrame.defaultLimit, codec: WireCodec = .zstd) {
    self.limit = min(max(limit, 0), WireFrame.largestLimit)
    self.codec = codec
  }

  /// Encodes a message as one binary frame.
  ///
  /// It sorts the labels and prefixes of scopes, and cuts long texts of errors and rejections.
  /// - Throws: ``PeerError`` when the message exceeds the bounds of the protocol.
  public func encode(_ message: WireMessage) throws(PeerError) -> [UInt8] {
    do throws(FormatError) {
      var message = message
      var visitor = WireVisitor(FrameCursor(writing: message.sizeHint, budget: limit))
      try visitor.visit(&message)
      return try WireFrame.encode(
        try WireFrame.store(visitor.frame.out.bytes, codec: codec), message.kind, limit: limit)
    } catch { throw PeerError(error) }
  }

  /// The entries of a page, coded and compressed once for the frames of all its readers.
  package func body(of page: PullAnswer) throws(PeerError) -> WireBody {
    do throws(FormatError) {
      var visitor = WireVisitor(
        FrameCursor(writing: WireMessage.pullAnswer(page).sizeHint, budget: limit))
      visitor.frame.last = page.cursor
      var entries = page.entries
      try visitor.rows("entries", &entries)
      return try WireFrame.store(visitor.frame.out.bytes, codec: codec)
    } catch { throw PeerError(error) }
  }

  /// A page as a frame, with entries that are coded already.
  /// - Parameters:
  ///   - page: one reader's answer; its cursor must be the one that the entries were coded with.
  ///   - body: the result of ``body(of:)`` for any reader's answer with this page.
  package func encode(_ page: PullAnswer, _ body: WireBody) throws(PeerError) -> [UInt8] {
    do throws(FormatError) {
      var page = page
      page.entries = []
      var message = WireMessage.pullAnswer(page)
      var visitor = WireVisitor(FrameCursor(writing: 512, budget: 0, isHead: true))
      try visitor.visit(&message)
      return try WireFrame.encode(
        head: visitor.frame.out.bytes, body, .pullAnswer, limit: limit)
    } catch { throw PeerError(error) }
  }

  /// Decodes the message in one binary frame.
  /// - Parameter bytes: exactly one frame.
  /// - Throws: ``PeerError`` of kind `malformed` for an invalid frame.
  public func decode(_ bytes: [UInt8]) throws(PeerError) -> WireMessage {
    do throws(FormatError) {
      let (kind, raw) = try WireFrame.decode(bytes.rawSpan, limit: limit)
      var message = WireMessage(blank: kind)
      var visitor = WireVisitor(
        FrameCursor(reading: raw, isRequest: kind.isRequest, budget: limit))
      try visitor.visit(&message)
      return message
    } catch { throw PeerError(error) }
  }

  /// Encodes a message as JSON text, in one line.
  /// - Throws: ``PeerError`` when the message exceeds the bounds of the protocol.
  public func encodeJSON(_ message: WireMessage) throws(PeerError) -> [UInt8] {
    do throws(FormatError) {
      var message = message
      var visitor = WireVisitor(writingJSON: message.sizeHint)
      try visitor.visit(&message)
      let text = visitor.json.bytes
      guard text.count <= limit * WireLimits.jsonFactor else { throw tooLong(text.count) }
      return text
    } catch { throw PeerError(error) }
  }

  /// Decodes the message in a JSON text.
  /// - Parameter text: the UTF-8 bytes of the text.
  /// - Throws: ``PeerError`` of kind `malformed` for an invalid message.
  public func decodeJSON(_ text: [UInt8]) throws(PeerError) -> WireMessage {
    do throws(FormatError) {
      guard text.count <= limit * WireLimits.jsonFactor else {
        throw tooLong(text.count)
      }
      var message = WireMessage.error(PeerError(.failed, ""))
      var visitor = try WireVisitor(readingJSON: text)
      try visitor.visit(&message)
      return message
    } catch { throw PeerError(error) }
  }

  private func tooLong(_ count: Int) -> FormatError {
    FormatError(
      "a message of \(count) bytes of JSON; at most \(limit * WireLimits.jsonFactor) are allowed")
  }
}
