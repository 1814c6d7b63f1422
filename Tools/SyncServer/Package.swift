// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .strictMemorySafety(),
  .treatAllWarnings(as: .error),
]

// The sync server: `Tools/server` builds and runs it.
let package = Package(
  name: "sync-server",
  platforms: [.macOS(.v15)],
  products: [.executable(name: "tidemark-server", targets: ["tidemark-server"])],
  traits: [
    .trait(name: "JWT", description: "JSON Web Tokens, by swift-crypto."),
    .trait(name: "TLS", description: "HTTPS without a proxy in front, by swift-nio-ssl."),
    .trait(name: "PostgreSQL", description: "Databases in PostgreSQL, by libpq."),
    .default(enabledTraits: ["JWT"]),
  ],
  dependencies: [
    .package(
      name: "tidemark", path: "../..",
      traits: [.defaults, .trait(name: "PostgreSQL", condition: .when(traits: ["PostgreSQL"]))]),
    .package(
      url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    .systemLibrary(name: "CAllocator"),
    .target(
      name: "SyncServerKit",
      dependencies: [
        "CAllocator",
        .product(name: "Tidemark", package: "tidemark"),
        .product(name: "TidemarkPostgres", package: "tidemark"),
        .product(name: "TidemarkSyncServer", package: "tidemark"),
        // Only its core: the paths of requests are compared as they came, without a router.
        .product(name: "HummingbirdCore", package: "hummingbird"),
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
        .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(traits: ["TLS"])),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["JWT"])),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "tidemark-server",
      dependencies: [
        "SyncServerKit",
        .product(name: "TidemarkSyncServer", package: "tidemark"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "server-bench",
      dependencies: [
        "SyncServerKit",
        .product(name: "Tidemark", package: "tidemark"),
        .product(name: "TidemarkPostgres", package: "tidemark"),
        .product(name: "TidemarkSyncServer", package: "tidemark"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "SyncServerKitTests",
      dependencies: [
        "SyncServerKit", "tidemark-server",
        .product(name: "Tidemark", package: "tidemark"),
        .product(name: "TidemarkHTTP", package: "tidemark"),
        .product(name: "TidemarkSync", package: "tidemark"),
        .product(name: "TidemarkSyncServer", package: "tidemark"),
        .product(name: "TidemarkSyncTestKit", package: "tidemark"),
        .product(name: "TidemarkTestKit", package: "tidemark"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "Crypto", package: "swift-crypto", condition: .when(traits: ["JWT"])),
      ],
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .treatAllWarnings(as: .error),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
