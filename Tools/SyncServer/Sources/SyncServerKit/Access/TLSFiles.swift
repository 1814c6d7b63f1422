#if TLS
  internal import NIOCore
  internal import NIOSSL
  internal import Synchronization

  #if canImport(Darwin)
    internal import Darwin
  #elseif canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// The certificates and the key for HTTPS, out of their files.
  ///
  /// SAFETY: a C call gets a string that lives as long as the call.
  final class TLSFiles: Sendable {
    private struct Content: Sendable {
      let chain: [NIOSSLCertificateSource]
      let key: NIOSSLPrivateKeySource

      var configuration: TLSConfiguration {
        var configuration = TLSConfiguration.makeServerConfiguration(
          certificateChain: chain, privateKey: key)
        configuration.minimumTLSVersion = .tlsv12
        return configuration
      }
    }

    private let certificatePath: String
    private let keyPath: String
    private let current: Mutex<Content>

    init(certificate: String?, key: String?) throws(SettingsError) {
      guard let certificate, let key else {
        throw SettingsError("HTTPS needs both a file with certificates and one with their key")
      }
      certificatePath = certificate
      keyPath = key
      current = Mutex(try Self.read(certificate, key))
    }

    /// Reads the files again, for the connections that come from now on.
    /// - Throws: for files with which the server would not start; the former count still.
    func reload() throws(SettingsError) {
      let read = try Self.read(certificatePath, keyPath)
      current.withLock { $0 = read }
    }

    /// The settings that connections are made with.
    var configuration: TLSConfiguration {
      var configuration = current.withLock { $0 }.configuration
      configuration.sslContextCallback = { [self] _, promise in
        let content = current.withLock { $0 }
        var changed = NIOSSLContextConfigurationOverride()
        changed.certificateChain = content.chain
        changed.privateKey = content.key
        promise.succeed(changed)
      }
      return configuration
    }

    private static func read(
      _ certificatePath: String, _ keyPath: String
    ) throws(SettingsError) -> Content {
      for path in [certificatePath, keyPath] where unsafe access(path, R_OK) != 0 {
        throw SettingsError(
          "cannot read \(path): \(String(errno: errno)); give files with --tls-cert and --tls-key "
            + "that the server's user may read", .unreadable)
      }
      guard let chain = try? NIOSSLCertificate.fromPEMFile(certificatePath), !chain.isEmpty else {
        throw SettingsError("\(certificatePath) is no certificate as PEM", .unreadable)
      }
      guard let key = try? NIOSSLPrivateKey(file: keyPath, format: .pem) else {
        throw SettingsError(
          "\(keyPath) is no key as PEM, or one that needs a password", .unreadable)
      }
      let content = Content(chain: chain.map { .certificate($0) }, key: .privateKey(key))
      guard (try? NIOSSLContext(configuration: content.configuration)) != nil else {
        throw SettingsError("the key in \(keyPath) is not that of \(certificatePath)")
      }
      return content
    }
  }
#else
  /// Stands for certificates and key in a build without HTTPS.
  struct TLSFiles: Sendable {
    init(certificate: String?, key: String?) throws(SettingsError) {
      throw SettingsError("this server was built without HTTPS (trait TLS)")
    }

    func reload() throws(SettingsError) {}
  }
#endif
