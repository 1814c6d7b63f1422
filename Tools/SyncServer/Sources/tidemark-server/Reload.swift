internal import Logging
internal import ServiceLifecycle
internal import SyncServerKit
internal import UnixSignals

/// At each SIGHUP, reads the token file, the key files of JSON Web Tokens and the certificates
/// again. A server without such files ends at SIGHUP, as other programs do.
struct Reload: Service {
  let access: AccessOptions
  let hasCertificates: Bool
  let server: SyncServer
  let logger: Logger

  func run() async throws {
    let signals = await UnixSignalsSequence(trapping: .sighup)
    for await _ in signals.cancelOnGracefulShutdown() { reload() }
  }

  private func reload() {
    if access.tokenFile != nil {
      tell("tokens") { try server.replaceTokens(try access.tokens()) }
    }
    if access.hasKeyFiles {
      tell("keys of web tokens") { try server.replaceWebTokenKeys(try access.webTokens()) }
    }
    if hasCertificates { tell("certificates") { try server.reloadCertificates() } }
  }

  /// Reads settings again and logs the outcome. An invalid file changes nothing: the server goes on
  /// with the previous settings.
  private func tell(_ what: String, _ read: () throws -> Void) {
    do {
      try read()
      logger.notice("read the \(what) again")
    } catch {
      logger.error(
        "the \(what) stay as they were: cannot be read again", metadata: ["error": "\(error)"])
    }
  }
}
