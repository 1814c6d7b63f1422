#if PostgreSQL
  internal import HTTPTypes
  internal import HummingbirdCore
  public import Logging
  internal import NIOCore
  internal import NIOPosix
  public import ServiceLifecycle
  internal import Tidemark
  internal import TidemarkSyncServer

  /// Answers operators over HTTP, at an address of its own: a path has the words of a command, as
  /// in `POST /quota/notes/1000000`, and the answer is JSON.
  public struct AdminServer: Service {
    private let administration: Administration
    private let host: String
    private let port: Int
    private let token: [UInt8]
    private let pool: WorkPool
    private let logger: Logger
    private let onReady: @Sendable (Int) async -> Void

    /// - Parameters:
    ///   - server: whose databases.
    ///   - token: that each request has to bear.
    ///   - onReady: called with the port when it listens.
    /// - Throws: for a short token, and a server whose databases are not in PostgreSQL.
    public init(
      of server: SyncServer, host: String = "127.0.0.1", port: Int, token: String, logger: Logger,
      onReady: @escaping @Sendable (Int) async -> Void = { _ in }
    ) throws(SettingsError) {
      guard let home = server.service.databases.home as? PostgresHome else {
        throw SettingsError("only databases in PostgreSQL are administered over HTTP")
      }
      guard StaticTokens.lengths.contains(token.utf8.count) else {
        throw SettingsError(
          "the token of administration has \(StaticTokens.lengths.lowerBound) to "
            + "\(StaticTokens.lengths.upperBound) bytes")
      }
      administration = Administration(home.feeds)
      (self.host, self.port, self.token) = (host, port, Array(token.utf8))
      // Not the server's threads: calls must not keep operators from what ends them.
      pool = WorkPool(threads: 2, perKey: 2, queued: 16)
      self.logger = logger
      self.onReady = onReady
    }

    public func run() async throws {
      let http = HTTP1Channel(
        responder: { request, writer, _ in
          try await reply(to: request).send(writer, isHead: request.method == .head)
        }, configuration: HTTP1Channel.Configuration(idleTimeout: .seconds(30)))
      var quiet = logger
      quiet.logLevel = max(.warning, logger.logLevel)
      let onReady = onReady
      do {
        try await http.server(
          configuration: ServerConfiguration(address: .hostname(host, port: port)),
          onServerRunning: { await onReady($0.localAddress?.port ?? 0) },
          eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: quiet
        ).run()
      } catch {
        await pool.shutDown()
        throw SettingsError.listening(at: host, port, error)
      }
      await pool.shutDown()
    }

    private func reply(to request: Request) async -> Reply {
      do throws(Problem) {
        guard let field = request.headers[.authorization], field.hasPrefix("Bearer "),
          StaticTokens.areEqual(token, Array(field.utf8.dropFirst("Bearer ".utf8.count)))
        else { throw Problem(.unauthorized, "the token is not that of administration") }
        let words = try (request.head.path ?? "").split(separator: "/").map {
          (part) throws(Problem) in
          guard let word = Self.decoded(part) else {
            throw Problem(.malformed, "a part of the path is no percent-encoded UTF-8")
          }
          return word
        }
        guard let command = AdminCommand.all.first(where: { $0.name == words.first }) else {
          throw Problem.notFound
        }
        let method: HTTPRequest.Method = command.isReading ? .get : .post
        guard request.method == method else { throw Problem.methodNotAllowed(method) }
        let administration = administration
        let answer = try await pool.run("admin", .calls) { () -> Result<String, TidemarkError> in
          Result { () throws(TidemarkError) in try administration.answer(words).json }
        }
        logger.notice("administration", metadata: ["words": "\(words.joined(separator: " "))"])
        do throws(TidemarkError) {
          return Reply(text: try answer.get() + "\n", contentType: "application/json")
        } catch {
          switch error.code {
          case .storeMissing: throw Problem(.forbidden, error.message, status: .notFound)
          case .invalidArgument, .limitExceeded: throw Problem(.malformed, error.message)
          default: throw Problem(.unavailable, error.message)
          }
        }
      } catch { return Reply(error, .json) }
    }

    /// Decodes the percent-encoding of a part of a path.
    private static func decoded(_ part: Substring) -> String? {
      var (bytes, rest) = ([UInt8](), part.utf8[...])
      while let byte = rest.popFirst() {
        guard byte == UInt8(ascii: "%") else {
          bytes.append(byte)
          continue
        }
        guard let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
          return nil
        }
        bytes.append(value)
        rest = rest.dropFirst(2)
      }
      return String(validating: bytes, as: UTF8.self)
    }
  }
#endif
