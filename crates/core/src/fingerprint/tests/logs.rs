//! What servers and systems log. One group is one kind of line, and no two groups are.

use super::check;

#[test]
#[rustfmt::skip]
fn system_logs() {
    check(&[
        &[
            "Failed password for invalid user webmaster from 173.234.31.186 port 38926 ssh2",
            "Failed password for invalid user oracle from 52.80.34.196 port 36060 ssh2",
        ],
        &[
            "Failed password for root from 112.95.230.3 port 51982 ssh2",
            "Failed password for uucp from 5.36.59.76 port 42393 ssh2",
        ],
        &[
            "Invalid user webmaster from 173.234.31.186",
            "Invalid user test9 from 52.80.34.196",
            "Invalid user  0101 from 5.188.10.180",
        ],
        &[
            "input_userauth_request: invalid user webmaster [preauth]",
            "input_userauth_request: invalid user pgadmin [preauth]",
        ],
        &[
            "reverse mapping checking getaddrinfo for ns.marryaldkfaczcz.com [173.234.31.186] failed - POSSIBLE BREAK-IN ATTEMPT!",
            "reverse mapping checking getaddrinfo for 191-210-223-172.user.vivozap.com.br [191.210.223.172] failed - POSSIBLE BREAK-IN ATTEMPT!",
        ],
        &[
            "Received disconnect from 112.95.230.3: 11: Bye Bye [preauth]",
            "Received disconnect from 187.141.143.180: 11: Bye Bye [preauth]",
        ],
        &["pam_unix(sshd:auth): check pass; user unknown"],
        &[
            "pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=173.234.31.186 ",
            "pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=ec2-52-80-34-196.cn-north-1.compute.amazonaws.com.cn",
        ],
        &["pam_unix(sshd:session): session opened for user fztu by (uid=0)"],
        &["Connection closed by 212.47.254.145 [preauth]", "Connection closed by 5.188.10.180 [preauth]"],
        &[
            "Receiving block blk_-1608999687919862906 src: /10.250.19.102:54106 dest: /10.250.19.102:50010",
            "Receiving block blk_7503483334202473044 src: /10.251.215.16:55695 dest: /10.251.215.16:50010",
        ],
        &[
            "PacketResponder 1 for block blk_38865049064139660 terminating",
            "PacketResponder 0 for block blk_-6952295868487656571 terminating",
        ],
        &[
            "BLOCK* NameSystem.addStoredBlock: blockMap updated: 10.251.73.220:50010 is added to blk_7128370237687728475 size 67108864",
        ],
        &[
            "BLOCK* ask 10.250.14.224:50010 to delete  blk_-5000000000000000000 blk_3 blk_77",
            "BLOCK* ask 10.250.14.224:50010 to delete  blk_-5140072410813878235",
        ],
        &[
            "BLOCK* NameSystem.allocateBlock: /user/root/rand/_temporary/_task_200811101024_0001_m_000590_0/part-00590. blk_-1727475099218615100",
            "BLOCK* NameSystem.allocateBlock: /mnt/hadoop/mapred/system/job_200811092030_0001/job.jar. blk_-1608999687919862906",
        ],
        &["Deleting block blk_1781953582842324563 file /mnt/hadoop/dfs/data/current/subdir5/blk_1781953582842324563"],
        &["Verification succeeded for blk_-4980916519894289629"],
        &["workerEnv.init() ok /etc/httpd/conf/workers2.properties"],
        &["mod_jk child workerEnv in error state 6", "mod_jk child workerEnv in error state 10"],
        &["jk2_init() Found child 6725 in scoreboard slot 10", "jk2_init() Found child 32155 in scoreboard slot 6"],
        &[
            "[client 222.166.160.184] Directory index forbidden by rule: /var/www/html/",
            "[client 61.220.139.68] Directory index forbidden by rule: /var/www/html/",
        ],
        &["Received connection request /10.10.34.11:45307", "Received connection request /10.10.34.13:34177"],
        &[
            "Established session 0x14f05578bd8000e with negotiated timeout 10000 for client /10.10.34.20:57557",
            "Established session 0x24ed93111f20027 with negotiated timeout 10000 for client /10.10.34.13:57895",
        ],
        &[
            "Connection broken for id 188978561024, my id = 1, error = ",
            "Connection broken for id 3, my id = 2, error = ",
        ],
        &["Cannot open channel to 2 at election address /10.10.34.12:3888"],
        &["Closed socket connection for client /10.10.34.11:59662 which had sessionid 0x14f05578bd80002"],
        &["Closed socket connection for client /10.10.34.11:59662 (no session established for client)"],
        &[
            "Progress of TaskAttempt attempt_1445144423722_0020_m_000002_0 is : 0.14",
            "Progress of TaskAttempt attempt_1445144423722_0020_r_000000_0 is : 0.2",
        ],
        &[
            "attempt_1445144423722_0020_m_000001_0 TaskAttempt Transitioned from NEW to UNASSIGNED",
            "attempt_1445144423722_0020_r_000000_0 TaskAttempt Transitioned from NEW to UNASSIGNED",
        ],
        &["task_1445144423722_0020_m_000000 Task Transitioned from SCHEDULED to RUNNING"],
        &[
            "Address change detected. Old: msra-sa-41/10.190.173.170:9000 New: msra-sa-41:9000",
            "Address change detected. Old: minint-75dgdam1/10.86.165.66:49594 New: minint-75dgdam1:9000",
        ],
        &[
            "Retrying connect to server: msra-sa-41:9000. Already tried 0 time(s); retry policy is RetryUpToMaximumCountWithFixedSleep(maxRetries=10, sleepTime=1000 MILLISECONDS)",
            "Retrying connect to server: minint-fnanli5:9000. Already tried 7 time(s); retry policy is RetryUpToMaximumCountWithFixedSleep(maxRetries=10, sleepTime=1000 MILLISECONDS)",
        ],
        &[
            "Resolved MSRA-SA-41.fareast.corp.microsoft.com to /default-rack",
            "Resolved 04DN8IQ.fareast.corp.microsoft.com to /default-rack",
        ],
        &[
            "Failed to renew lease for [DFSClient_NONMAPREDUCE_1537864556_1] for 51 seconds.  Will retry shortly ...",
            "Failed to renew lease for [DFSClient_NONMAPREDUCE_483047941_1] for 179 seconds.  Will retry shortly ...",
        ],
        &[
            "Read out cached package applicability for package: Package_for_KB2928120~31bf3856ad364e35~amd64~~6.1.1.2, ApplicableState: 112, CurrentState:112",
            "Read out cached package applicability for package: Package_for_KB3004375~31bf3856ad364e35~amd64~~6.1.3.0, ApplicableState: 80, CurrentState:0",
        ],
        &[
            "Session: 30546174_4261722401 initialized by client WindowsUpdateAgent.",
            "Session: 30546174_109520151 initialized by client WindowsUpdateAgent.",
        ],
        &[
            "Loaded Servicing Stack v6.1.7601.23505 with Core: C:\\Windows\\winsxs\\amd64_microsoft-windows-servicingstack_31bf3856ad364e35_6.1.7601.23505_none_681aa442f6fed7f0\\cbscore.dll",
        ],
        &[
            "00000004@2016/9/27:20:30:31.455 WcpInitialize (wcp.dll version 0.0.0.6) called (stack @0x7fed806eb5d @0x7fef9fb9b6d @0x7fef9f8358f)",
            "00000002@2016/9/28:04:30:31.455 WcpInitialize (wcp.dll version 0.0.0.6) called (stack @0x7fed806eb5d @0x7fefa1c8728)",
        ],
        &[
            "SQM: Failed to start upload with file pattern: C:\\Windows\\servicing\\sqm\\*_std.sqm, flags: 0x2 [HRESULT = 0x80004005 - E_FAIL]",
        ],
        &["DHCPDISCOVER from 00:11:43:e3:ba:c3 via eth1", "DHCPDISCOVER from 00:0b:db:22:aa:99 via eth1"],
        &["(root) CMD (run-parts /etc/cron.hourly)"],
        &["synchronized to 10.100.20.250, stratum 3", "synchronized to 10.100.18.250, stratum 3"],
        &[
            "ARPT: 620701.011328: wl0: wl_update_tcpkeep_seq: Original Seq: 3092633436, Ack: 1990738221, Win size: 4096",
            "ARPT: 641083.002302: wl0: wl_update_tcpkeep_seq: Original Seq: 2955519239, Ack: 3795406121, Win size: 4096",
        ],
        &["en0: channel changed to 1", "en0: channel changed to 132,+1"],
        &[
            "Exception in createBlockOutputStream java.io.IOException: Bad connect ack with firstBadLink 10.251.29.239:50010",
            "Exception in createBlockOutputStream java.io.IOException: Bad connect ack with firstBadLink 10.250.6.4:50010",
        ],
        &[
            "10.251.30.6:50010:Got exception while serving blk_2712017358565000000 to /10.251.30.6:",
            "10.250.15.101:50010:Got exception while serving blk_-1 to /10.250.15.101:",
        ],
        &[
            "Received block blk_3587508140051953248 of size 67108864 from /10.251.42.84",
            "Received block blk_5402003568334525940 of size 67108864 from /10.251.214.112",
        ],
        &[
            "BLOCK* NameSystem.delete: blk_-1 is added to invalidSet of 10.250.5.161:50010",
            "BLOCK* NameSystem.delete: blk_78 is added to invalidSet of 10.251.30.6:50010",
        ],
        &[
            "JVM with ID : jvm_1445144423722_0020_m_000002 asked for a task",
            "JVM with ID : jvm_1445144423722_0020_r_000009 asked for a task",
        ],
        &[
            "Auth successful for job_1445144423722_0020 (auth:SIMPLE)",
            "Auth successful for job_1445182159119_0012 (auth:SIMPLE)",
        ],
        &[
            "After Scheduling: PendingReds:0 ScheduledMaps:2 ScheduledReds:0 AssignedMaps:7 AssignedReds:0 CompletedMaps:1 CompletedReds:0 ContAlloc:8 ContRel:0 HostLocal:6 RackLocal:2",
            "After Scheduling: PendingReds:1 ScheduledMaps:12 ScheduledReds:0 AssignedMaps:7 AssignedReds:0 CompletedMaps:11 CompletedReds:0 ContAlloc:8 ContRel:0 HostLocal:6 RackLocal:2",
        ],
        &[
            "Error communicating with RM: No Route to Host from  MININT-FNANLI5/127.0.0.1 to msra-sa-41:8030 failed on socket timeout exception: java.net.NoRouteToHostException: No route to host",
            "Error communicating with RM: No Route to Host from  MSRA-SA-39/10.1.1.1 to msra-sa-41:8030 failed on socket timeout exception: java.net.NoRouteToHostException: No route to host",
        ],
        &[
            "DFSOutputStream ResponseProcessor exception  for block BP-1347369012-10.190.173.170-1444972147527:blk_1073742826_2022",
            "DFSOutputStream ResponseProcessor exception  for block BP-1347369012-10.190.173.170-1444972147527:blk_1073743001_7",
        ],
        &["mapResourceRequest:<memory:1024, vCores:1>"],
        &["maxContainerCapability: <memory:8192, vCores:32>"],
        &[
            "Jetty bound to port 62267",
            "Jetty bound to port 8088",
        ],
        &["Extract jar:file:/D:/hadoop-2.6.0-localbox/share/hadoop/yarn/hadoop-yarn-common-2.6.0-SNAPSHOT.jar!/webapps/mapreduce to C:\\Users\\msrabi\\AppData\\Local\\Temp\\2\\Jetty_0_0_0_0_62267_mapreduce____.qig90n\\webapp"],
        &[
            "Notification: 1 (n.leader), 0x0 (n.zxid), 0x1 (n.round), LOOKING (n.state), 1 (n.sid), 0x0 (n.peerEPoch), LOOKING (my state)",
            "Notification: 3 (n.leader), 0x100000 (n.zxid), 0x2 (n.round), LOOKING (n.state), 2 (n.sid), 0x1 (n.peerEPoch), LOOKING (my state)",
        ],
        &[
            "Notification time out: 3200",
            "Notification time out: 60000",
        ],
        &[
            "Expiring session 0x14ede63a5a70002, timeout of 10000ms exceeded",
            "Expiring session 0x24ede63a5a00001, timeout of 10000ms exceeded",
        ],
        &[
            "Got user-level KeeperException when processing sessionid:0x14f05578bd80006 type:create cxid:0x1 zxid:0x100 txntype:-1 reqpath:n/a Error Path:/home Error:KeeperErrorCode = NodeExists for /home",
            "Got user-level KeeperException when processing sessionid:0x14f05578bd80016 type:create cxid:0x7 zxid:0x1f0 txntype:-1 reqpath:n/a Error Path:/home/curi Error:KeeperErrorCode = NodeExists for /home/curi",
        ],
        &["My election bind port: 0.0.0.0/0.0.0.0:3888"],
        &[
            "New election. My id =  1, proposed zxid=0x100000000",
            "New election. My id =  3, proposed zxid=0x0",
        ],
        &[
            "******* GOODBYE /10.10.34.13:37473 ********",
            "******* GOODBYE /10.10.34.12:35276 ********",
        ],
        &[
            "Have smaller server identifier, so dropping the connection: (3, 1)",
            "Have smaller server identifier, so dropping the connection: (2, 1)",
        ],
        &["hdb: max request size: 128KiB"],
        &[
            "session opened for user root by (uid=0)",
            "session opened for user nagios by (uid=0)",
        ],
        &["(root) CMD (/usr/lib64/sa/sa1 1 1)"],
        &[
            "data_thread() got not answer from any [Thunderbird_A8] datasource",
            "data_thread() got not answer from any [Thunderbird_B3] datasource",
        ],
        &[
            "DHCPOFFER on 10.100.4.251 to 00:11:43:e3:ba:c3 via eth1",
            "DHCPOFFER on 10.100.4.12 to 00:11:43:aa:bb:cc via eth1",
        ],
        &["ib_sm_sweep.c:1831]: No topology change"],
        &["check_pass; user unknown"],
        &[
            "Connection from 10.100.22.250 port 33131",
            "Connection from 10.100.8.1 port 4000",
        ],
        &[
            "Did not receive identification string from 103.207.39.165",
            "Did not receive identification string from 195.154.37.122",
        ],
        &[
            "message repeated 5 times: [ Failed password for root from 5.36.59.76 port 42393 ssh2]",
            "message repeated 2 times: [ Failed password for root from 106.5.5.195 port 50719 ssh2]",
        ],
        &[
            "PAM 5 more authentication failures; logname= uid=0 euid=0 tty=ssh ruser= rhost=5.36.59.76.dynamic-dsl-ip.omantel.net.om  user=root",
            "PAM 4 more authentication failures; logname= uid=0 euid=0 tty=ssh ruser= rhost=123.235.32.19  user=root",
        ],
        &[
            "error: Received disconnect from 103.99.0.122: 14: No more user authentication methods available. [preauth]",
            "error: Received disconnect from 195.154.37.122: 3: No more user authentication methods available. [preauth]",
        ],
        &["error: Received disconnect from 185.190.58.151: 3: com.jcraft.jsch.JSchException: Auth fail [preauth]"],
        &["Starting TrustedInstaller initialization."],
        &["Scavenge: Begin CSI Store"],
        &["Startup: Trusted Installer Service starts successfully."],
        &[
            "Session: 30546354_3247165991 initialized by client SPP.",
            "Session: 30546354_2247165123 initialized by client SPP.",
        ],
        &["Warning: Unrecognized packageExtended attribute."],
        &["Failed to internally open package. [HRESULT = 0x800f0805 - CBS_E_INVALID_PACKAGE]"],
        &["Disconnecting: Too many authentication failures for admin [preauth]"],
        &[
            "ARPT: 621131.293163: wl0: Leaving Modern Standby? ",
            "ARPT: 700000.000001: wl0: Leaving Modern Standby? ",
        ],
        &["AirPort_Brcm43xx::powerChange: System Sleep "],
        &[
            "Received Capture notice id: 1499179519.337, reason = AuthFail:sts:5_rsn:0",
            "Received Capture notice id: 1499300001.1, reason = AuthFail:sts:5_rsn:0",
        ],
        &[
            "IOThunderboltSwitch<0>(0x0)::listenerCallback - Thunderbolt HPD packet for route = 0x0 port = 11 unplug = 0",
            "IOThunderboltSwitch<0>(0x0)::listenerCallback - Thunderbolt HPD packet for route = 0x0 port = 12 unplug = 0",
        ],
        &["Wake reason: ARPT (Network)"],
        &[
            "Previous sleep cause: 5",
            "Previous sleep cause: 0",
        ],
        &[
            "PM response took 1938 ms (54, powerd)",
            "PM response took 28003 ms (54, powerd)",
        ],
        &[
            "scheduler_evaluate_activity told me to run this job; however, but the start time isn't for 439034 seconds.  Ignoring.",
            "scheduler_evaluate_activity told me to run this job; however, but the start time isn't for 1 seconds.  Ignoring.",
        ],
        &["Unknown key for integer: _DirtyJetsamMemoryLimit"],
        &[
            "[ 2017-07-03 09:21:03 ] Job completed for 0x7fa1 (pid 123)",
            "[ 2017-07-05 19:01:55 ] Job completed for 0x7fb2 (pid 98)",
        ],
    ]);
}
