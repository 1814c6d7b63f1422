internal import Logging
internal import NIOCore

#if TLS
  internal import NIOSSL
  internal import Synchronization

  #if canImport(Darwin)
    internal import Foundation
  #else
    internal import FoundationEssentials
  #endif

  /// The certificates and the key for HTTPS, read from their files.
  final class TLSFiles: Sendable {
    private let certificatePath: String
    private let keyPath: String
    private let logger: Logger
    private let current: Mutex<NIOSSLContext>

    init(certificate: String?, key: String?, _ logger: Logger) throws(SettingsError) {
      guard let certificate, let key else {
        throw SettingsError("HTTPS needs both a file with certificates and one with their key")
      }
      certificatePath = certificate
      keyPath = key
      self.logger = logger
      current = Mutex(try Self.read(certificate, key, logger))
    }

    /// Reads the files again, for later connections.
    /// - Throws: for files with which the server would not start; then the previous ones stay.
    func reload() throws(SettingsError) {
      let read = try Self.read(certificatePath, keyPath, logger)
      current.withLock { $0 = read }
    }

    /// Adds TLS to a new connection. Reading the files again makes another context, so that no
    /// session is resumed that began with a previous certificate.
    func secure(_ channel: any Channel) throws {
      let context = current.withLock { $0 }
      try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
    }

    private static func configuration(
      _ chain: [NIOSSLCertificate], _ key: NIOSSLPrivateKey
    ) -> TLSConfiguration {
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
      configuration.minimumTLSVersion = .tlsv12
      // Suites with forward secrecy and authenticated encryption; TLS 1.3 has no others.
      configuration.cipherSuiteValues = [
        .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
      ]
      return configuration
    }

    private static func read(
      _ certificatePath: String, _ keyPath: String, _ logger: Logger
    ) throws(SettingsError) -> NIOSSLContext {
      let certificates = try SettingsFile.bytes(at: certificatePath)
      let keys = try SettingsFile.bytes(at: keyPath)
      guard let chain = try? NIOSSLCertificate.fromPEMBytes(certificates), !chain.isEmpty else {
        throw SettingsError("\(certificatePath) is no certificate as PEM", .unreadable)
      }
      guard let key = try? NIOSSLPrivateKey(bytes: keys, format: .pem) else {
        throw SettingsError(
          "\(keyPath) is no key as PEM, or one that needs a password", .unreadable)
      }
      guard let context = try? NIOSSLContext(configuration: configuration(chain, key)) else {
        throw SettingsError("the key in \(keyPath) is not that of \(certificatePath)")
      }
      tell(chain, certificatePath, logger)
      return context
    }

    /// Logs a warning for each certificate that has expired or is not valid yet. The server starts
    /// all the same: its clock may be wrong, or the certificate may be renewed through the server.
    private static func tell(_ chain: [NIOSSLCertificate], _ path: String, _ logger: Logger) {
      let now = Int(Date().timeIntervalSince1970)
      for (place, certificate) in chain.enumerated()
      where certificate.notValidAfter < now || certificate.notValidBefore > now {
        let reason = certificate.notValidAfter < now ? "is over" : "is not valid yet"
        logger.warning(
          "a certificate \(reason), so that clients refuse to connect",
          metadata: ["file": "\(path)", "place": "\(place + 1)"])
      }
    }
  }
#else
  /// A placeholder in a build without HTTPS.
  struct TLSFiles: Sendable {
    init(certificate: String?, key: String?, _ logger: Logger) throws(SettingsError) {
      throw SettingsError("this server was built without HTTPS (trait TLS)")
    }

    func reload() throws(SettingsError) {}
    func secure(_ channel: any Channel) throws {}
  }
#endif
